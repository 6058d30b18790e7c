// What the next step does. A policy sees sequences as counts and KV accounting, no engine, no model
// and no text beyond what the prefix cache compares; it returns a value, the step plan. The engine
// owns the lists and applies the plan.
//
// Continuous: every running sequence gets its next row each step; what is left of the row budget
// goes to prefill chunks, oldest first; new sequences enter while places and blocks (less a
// watermark, and less what running sequences still need for the text they have) are there.
// Source of iteration-level scheduling: Yu et al., "Orca", OSDI 2022; of chunked prefill: Agrawal
// et al., "Sarathi-Serve", OSDI 2024.
//
// Dynamic: waits until a preferred number of sequences is there (max_sequences, its half or its
// quarter) or the first has waited for batch_delay; then runs that batch as continuous would, but
// no one enters before it has ended.
//
// Static: waits for max_sequences or batch_delay. All prompts are computed first, each padded to
// the longest, then all decode; who has ended keeps its place, and a padding row, until the batch
// has ended.
//
// All three: when blocks run out a running sequence is preempted: its table is closed and it is
// computed again later. Sequences rank by priority, then age; stalled ones rank last. The lowest
// rank is preempted, and only for a higher one. The highest always progresses. A stalled sequence
// holds up no batch: when it goes on it belongs to the one that runs, or if it was preempted to the
// next.
// Source of paging and preemption by recompute: Kwon et al., "PagedAttention", SOSP 2023.
//
// One thread (the engine's) calls a policy; policies share nothing.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kv/kv_manager.h"

namespace headrace {

struct SchedulerLimits {
  int max_sequences = 32;     // running at once, and in a step
  int max_step_tokens = 512;  // rows of a step: decode rows first, then prefill
  int max_logit_rows = 64;    // rows of a step whose logits are read
  double watermark = 0.01;    // share of blocks kept free when a new sequence enters
  Duration batch_delay = std::chrono::milliseconds(50);  // static and dynamic: see above
  // Contiguous KV: a sequence enters with blocks for so many tokens, used or not. 0: it gets blocks
  // as it grows.
  int reserved_tokens = 0;
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
  // Running, but its client does not read: gets no rows, takes no place, goes first.
  bool stalled = false;
  // Rows at or beyond this position want logits. The last known token's row always does.
  int logits_from = std::numeric_limits<int>::max();
  TimePoint arrival{};
};

struct PlannedRows {
  SequenceId id{};
  int first_position = 0;  // == num_computed
  int num_rows = 0;        // positions [first, first + num_rows)
  int num_logits = 0;      // of the last n rows
  bool completes = false;  // the last row is the last known token: its logits give the next token
};

// Rows that no one reads: they fill a batch up. Their K and V go to the dummy block.
struct PaddingRows {
  int first_position = 0;
  int num_rows = 0;
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
  std::vector<PaddingRows> padding;
  int num_rows = 0;          // with padding
  int num_prefill_rows = 0;  // with the padding of prompts
  int num_padding_rows = 0;
  int num_logits = 0;
  // Without rows: nothing is to be done before this time, or before something arrives or ends.
  std::optional<TimePoint> wait_until;
  // Why it stopped adding: "budget", "logits", "blocks", "sequences", "batch", "nothing waits".
  std::string_view why;
};

struct SchedulerInput {
  std::span<const SchedSequence> running;  // oldest first
  // In the order in which they should start; none is stalled. At least the first lookahead().
  std::span<const SchedSequence> waiting;
  TimePoint now{};
  bool more_may_come = true;  // false: waiting for a fuller batch is in vain
  // Of this step, where that is less than the policy's limits. Sequences: no more are started.
  int max_step_rows = std::numeric_limits<int>::max();
  int max_sequences = std::numeric_limits<int>::max();
};

enum class BatchingKind { kContinuous, kDynamic, kStatic };
inline constexpr std::string_view kBatchingNames = "continuous, dynamic or static";

std::string_view name_of(BatchingKind kind);
std::optional<BatchingKind> batching_kind(std::string_view name);

class BatchingPolicy {
 public:
  virtual ~BatchingPolicy() = default;
  virtual std::string_view name() const = 0;
  // How many of those that wait it has to see.
  virtual int lookahead() const = 0;
  // Opens, reserves and closes tables as the plan says. While a sequence runs unstalled, the plan
  // has rows; while some wait with no one running, it has rows or a time to wait for: every
  // sequence given fits the KV memory alone. A plan need not be carried out in full: what was not
  // computed is planned again.
  virtual StepPlan schedule(const SchedulerInput& input, KvManager& kv) = 0;
};

std::unique_ptr<BatchingPolicy> make_policy(BatchingKind kind, const SchedulerLimits& limits);

}  // namespace headrace
