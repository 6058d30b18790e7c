// What a client asks of an engine and what comes back. A RequestSpec is immutable once submitted.
// Events travel through a bounded ring: the engine is its one writer, the client's I/O thread its
// one reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "sampling/params.h"
#include "sampling/sampler.h"

namespace headrace {

struct RequestSpec {
  std::string name;                     // x-request-id
  std::vector<TokenId> prompt;          // not empty
  SamplingParams sampling;              // validated
  std::vector<std::string> stop;        // text that ends the answer; not part of it
  std::vector<TokenId> stop_token_ids;  // beside the model's own end tokens
  int max_tokens = 0;  // of output; 0: none (scoring). Cut to the context by the engine
  int min_tokens = 0;  // no end token before so many; no stop in the text before the last of them
  bool ignore_eos = false;
  bool prompt_logprobs =
      false;  // score the prompt too (echo with logprobs); never uses cached prefixes
  std::uint64_t cache_salt = 0;       // only requests of equal salt share cached prefixes
  int priority = 0;                   // lower first
  TimePoint arrival{};                // not set: when it is submitted
  std::optional<TimePoint> deadline;  // then it ends with kDeadline, queued or running
};

enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled, kDeadline, kError };

struct RequestTimings {
  double queue_ms = 0;
  double ttft_ms = 0;
  double total_ms = 0;
};

struct RequestUsage {
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int completion_tokens = 0;
};

// One generated token, or the end. Text is whole UTF-8 and only what can no longer become part of a
// stop string, so it may lag behind the tokens; concatenated it is the answer.
struct TokenEvent {
  SampledToken token;  // token.token == -1: no token of the answer, only text or the end
  std::string piece;   // this token's own bytes, for log-probabilities
  std::string text;    // text that became final with it
  std::optional<FinishReason> finish;  // set in exactly one event, the last
  TokenId end_token =
      -1;  // with kStop: the end token; counted as generated, but no part of the answer
  std::string
      stop_reason;  // with kStop: the stop string, or the id of the request's own stop token
  std::optional<Error> error;  // with kError and kDeadline
  RequestTimings timings;      // with finish
  RequestUsage usage;          // with finish
};

// The client's end of a request. Destroying it cancels what is not finished.
class RequestHandle {
 public:
  virtual ~RequestHandle() = default;
  // The next event, if one is there. One reader.
  virtual std::optional<TokenEvent> poll() = 0;
  // Called (from the engine's thread; must not block, nor destroy this handle) when events are
  // there after poll() found none. Set once, before the first poll(). Never called after the handle
  // is gone.
  virtual void set_waker(std::function<void()> waker) = 0;
  // Blocks until an event is there: for the command line and tests.
  virtual TokenEvent wait() = 0;
  // Any thread. A last event with kCancelled still comes.
  virtual void cancel() = 0;
  // The prompt's scores, one per prompt token from the second on, valid after the first event;
  // empty unless asked for.
  virtual const std::vector<SampledToken>& prompt_scores() const = 0;
};

}  // namespace headrace
