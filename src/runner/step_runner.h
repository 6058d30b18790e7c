// Runs one step of a model over plain rows. Knows nothing of requests or of the plan that asked for
// it, so speculation, scoring and prefill use it alike. One thread (the engine's).
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/kv_manager.h"

namespace headrace {

// Padding has no table: its K and V go to the dummy block, and no one reads what it computes.
inline constexpr TableId kNoTable{-1};

// One sequence's part of a step: tokens at positions num_computed, num_computed + 1, ...
struct SequenceRows {
  std::span<const TokenId> tokens;  // at least one
  int num_computed = 0;
  TableId table;       // kNoTable: padding, without logits. Else block lists are read from the
                       // KvManager; room is reserved
  int num_logits = 0;  // logits of the last n rows; 0: none
};

struct RunnerLimits {
  int max_rows = 512;       // of a step
  int max_sequences = 32;   // of a step
  int max_logit_rows = 64;  // of a step
  int max_context = 0;      // tokens of a sequence
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual const RunnerLimits& limits() const = 0;
  virtual int vocab_size() const = 0;

  // Computes the rows and appends their K and V. Returns false if `abort` was set and the step was
  // given up: what it would have computed then counts as not computed.
  virtual bool run(std::span<const SequenceRows> rows,
                   const KvManager& kv,
                   const std::atomic<bool>* abort) = 0;

  // Row i of the logits asked for, in the order of `rows`, then of positions; valid until the next
  // run(). [V]
  virtual std::span<const float> logits(int logit_idx) const = 0;
};

}  // namespace headrace
