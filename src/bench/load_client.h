// A load client for any server that speaks OpenAI's streaming API: sends requests at their times
// (open loop) or a fixed number at once (closed loop), and notes when each token came. One thread
// does all the sending and reading, so that a busy machine delays what is measured as little as can
// be; its own CPU time is part of the result.
//
// run_load() blocks; any thread, one call at a time in a process (libcurl's global state).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/latency.h"
#include "bench/workload.h"

namespace headrace {

struct LoadTarget {
  std::string url{};    // of the server, as http://127.0.0.1:8080; with or without /v1
  std::string model{};  // "": none is named
  std::string api_key{};
  bool chat = false;       // /v1/chat/completions instead of /v1/completions
  bool ignore_eos = true;  // asks for all output tokens; a server may not know the field
  double timeout_s = 600;  // of one request
};

struct LoadPlan {
  std::vector<LoadRequest> requests{};
  int concurrency = 0;     // > 0: so many are under way at once, whatever their times
  std::uint64_t seed = 0;  // of the prompts' words
};

enum class LoadOutcome { kOk, kRejected, kTimeout, kFailed };  // rejected: 429, 503; timeout: 504

struct LoadSample {
  double start_s = 0;  // after the start
  LoadOutcome outcome = LoadOutcome::kFailed;
  int status = 0;  // HTTP; 0: none came
  double ttft_ms = 0;
  double e2e_ms = 0;
  std::vector<double> itl_ms{};  // between one piece of text and the next
  int prompt_tokens = 0;         // as the server counts
  int output_tokens = 0;
  int retry_after_s = 0;
  std::string error{};
};

struct LoadResult {
  std::vector<LoadSample> samples{};  // in the order of the plan
  double duration_s = 0;
  double client_cpu_s = 0;
};

// The first model of /v1/models.
Result<std::string> first_model(const LoadTarget& target);

// kInvalidArgument: the URL; kUnavailable: no server answers there. What goes wrong later is an
// outcome of its request. `progress` hears how many have ended.
Result<LoadResult> run_load(const LoadTarget& target,
                            const LoadPlan& plan,
                            const std::function<void(int)>& progress);

struct LoadSummary {
  int num_ok = 0;
  int num_rejected = 0;
  int num_timeout = 0;
  int num_failed = 0;
  double duration_s = 0;
  double client_cpu_s = 0;
  double output_tokens_per_s = 0;
  double prompt_tokens = 0;  // mean, of ok requests
  double output_tokens = 0;
  Percentiles ttft_ms{};
  Percentiles itl_ms{};
  Percentiles e2e_ms{};
  Percentiles rejected_ms{};  // how long a rejection took
  std::vector<double> slo{};  // attainment of each target by ok requests
  double goodput = 0;         // ok requests a second that met every target
  bool held = false;          // every target, by a share of all requests that fits its quantile
  std::string first_error{};  // of a failed request
};

LoadSummary summarize(const LoadResult& result, const std::vector<SloTarget>& slo);

// num_words words that most vocabularies know as a token each; other numbers, another text.
std::string make_prompt(std::uint64_t seed, std::uint64_t number, int num_words);

}  // namespace headrace
