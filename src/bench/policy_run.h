// The three batching policies and two layouts of KV memory under one recorded load: a real engine
// over a real (or fake) runner in this process, stepped by the caller's thread, which also plays
// the clients. The runner is used by one run after another, so all see the same weights and
// kernels.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/latency.h"
#include "bench/workload.h"
#include "engine/engine.h"

namespace headrace {

struct PolicySetup {
  BatchingKind batching = BatchingKind::kContinuous;
  SchedulerLimits limits{};  // with reserved_tokens: contiguous KV
  std::vector<KvGroupSpec> groups{{}};
  int num_blocks = 0;
  int tokens_per_block = 16;
  std::uint64_t seed = 0;  // of the prompts' tokens
};

struct PolicyRun {
  double duration_s = 0;  // from the first arrival to the last end
  std::int64_t output_tokens = 0;
  double output_tokens_per_s = 0;
  std::vector<double> ttft_ms{};  // by request
  std::vector<double> e2e_ms{};
  std::vector<double> itl_ms{};  // all gaps
  // 1 - live tokens / allocated places, of each step that held any.
  std::vector<double> waste_by_step{};
  double waste_ratio = 0;    // their mean
  double padding_share = 0;  // of all rows computed
  int num_preempted = 0;
  int most_running = 0;  // sequences in a step
};

// What the runs share. The tokenizer turns output to text, as for a client.
struct PolicyParts {
  StepRunner& runner;
  std::shared_ptr<const Tokenizer> tokenizer{};
  std::shared_ptr<const Clock> clock{};
  // Lets time pass while nothing is to be done, at most this long.
  std::function<void(Duration)> sleep{};
};

// Each request gets exactly its output tokens (end tokens are ignored). kInvalidArgument: a request
// longer than the context or than the KV memory.
Result<PolicyRun> run_policy(const PolicyParts& parts,
                             const PolicySetup& setup,
                             const std::vector<LoadRequest>& workload);

}  // namespace headrace
