// What the next step does. A policy sees sequences as counts and KV accounting, no engine, no model
// and no text beyond what the prefix cache compares; it returns a value, the step plan. The engine
// owns the lists and applies the plan.
//
// Continuous batching: every running sequence gets its next row each step; what is left of the row
// budget goes to prefill chunks, oldest first; new sequences enter while places and blocks (less a
// watermark, and less what running sequences still need for the text they have) are there. When
// blocks run out a running sequence is preempted: its table is closed and it is computed again
// later. Sequences rank by priority, then age; stalled ones rank last. The lowest rank is
// preempted, and only for a higher one. The highest always progresses. Source of iteration-level
// scheduling: Yu et al., "Orca", OSDI 2022; of paging and preemption by recompute: Kwon et al.,
// "PagedAttention", SOSP 2023; of chunked prefill: Agrawal et al., "Sarathi-Serve", OSDI 2024.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kv/kv_manager.h"

namespace headrace {

struct SchedulerLimits {
  int max_sequences = 32;     // running at once, and in a step
  int max_step_tokens = 512;  // rows of a step: decode rows first, then prefill
  int max_logit_rows = 64;    // rows of a step whose logits are read
  double watermark = 0.01;    // share of blocks kept free when a new sequence enters
};

// A sequence as a policy sees it. `tokens` is all that is known: prompt, then output. A sequence is
// decoding when num_computed == tokens.size() - 1, else it is (re)computing a prompt.
struct SchedSequence {
  SequenceId id{};
  std::span<const TokenId> tokens{};
  int num_computed = 0;    // their KV is in the cache
  bool has_table = false;  // running, with the table below
  TableId table{};
  std::uint64_t salt = 0;
  bool use_prefix_cache = true;
  int priority = 0;  // lower first
  bool stalled =
      false;  // running, but its client does not read: gets no rows, takes no place, goes first
  // Rows at or beyond this position want logits. The last known token's row always does.
  int logits_from = std::numeric_limits<int>::max();
};

struct PlannedRows {
  SequenceId id{};
  int first_position = 0;  // == num_computed
  int num_rows = 0;        // positions [first, first + num_rows)
  int num_logits = 0;      // of the last n rows
  bool completes = false;  // the last row is the last known token: its logits give the next token
};

struct StartedSequence {
  SequenceId id{};
  TableId table{};
  int num_cached = 0;  // tokens taken from the prefix cache; its num_computed from now on
};

struct StepPlan {
  std::vector<SequenceId> preempted;     // tables closed; num_computed becomes 0; back to waiting
  std::vector<StartedSequence> started;  // from waiting to running
  std::vector<PlannedRows> rows;         // blocks are reserved; decode rows first
  int num_rows = 0;
  int num_prefill_rows = 0;
  int num_logits = 0;
  std::string_view
      why;  // why it stopped adding: "budget", "logits", "blocks", "sequences", "nothing waits"
};

struct SchedulerInput {
  std::span<const SchedSequence> running;  // oldest first
  std::span<const SchedSequence>
      waiting;  // in the order in which they should start; none is stalled
};

class BatchingPolicy {
 public:
  virtual ~BatchingPolicy() = default;
  virtual std::string_view name() const = 0;
  // Opens, reserves and closes tables as the plan says. While a sequence runs unstalled, or waits
  // with no one running, the plan has rows: every sequence given fits the KV memory alone.
  virtual StepPlan schedule(const SchedulerInput& input, KvManager& kv) = 0;
};

std::unique_ptr<BatchingPolicy> make_continuous_policy(const SchedulerLimits& limits);

}  // namespace headrace
