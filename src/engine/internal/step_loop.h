// The engine's thread's part: all generation state and what one step does with it. step(),
// end_all() and next_deadline() belong to that one thread; stats() and records() to any.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cost/step_cost.h"
#include "engine/engine.h"
#include "engine/internal/mailbox.h"
#include "engine/internal/sequence_store.h"
#include "sampling/sampler.h"

namespace headrace {

// Expects of a step what steps of its kind took lately.
class StepTimes {
 public:
  void add(int num_rows, bool has_prefill, Duration took);
  Duration expected(int num_rows, bool has_prefill) const;

 private:
  double decode_seconds_ = 0;  // of a step
  double prefill_seconds_per_row_ = 0;
  std::array<bool, 2> seen_{};  // without and with prefill rows; a step never seen may be long
};

class StepLoop {
 public:
  StepLoop(Engine::Parts& parts, const EngineOptions& options, Mailbox& mailbox, int max_context);

  bool step();  // false: nothing to do
  void end_all(FinishReason reason);
  std::optional<TimePoint> next_deadline() const;

  EngineStats stats() const;
  std::vector<StepRecord> records() const;

 private:
  // step_loop.cc: from letters to the forward pass
  bool take_letters();
  void accept(Arrival arrival);
  bool expire(TimePoint now);
  std::optional<TimePoint> expiry(const Sequence& sequence) const;
  void resume_stalled();
  StepPlan schedule(TimePoint now);
  SchedSequence view_of(const Sequence& sequence) const;
  void apply(const StepPlan& plan, TimePoint now);
  void compute(const StepPlan& plan, StepRecord& record);
  bool forward(const StepPlan& plan, StepRecord& record);
  void fail_step(const StepPlan& plan, const std::string& what);
  void note_cost(const StepPlan& plan, Duration took);
  void pace(SchedulerInput& input);
  void report_speed();
  void record_step(const StepPlan& plan, const StepRecord& record);
  void check() const;

  // step_loop_output.cc: from logits to events
  void commit(const PlannedRows& rows, int logit_idx);
  void score_prompt(Sequence& sequence, const PlannedRows& rows, int logit_idx);
  SampledToken sample(const Sequence& sequence, int logit_idx);
  void add_token(Sequence& sequence, SampledToken token);
  void end(Sequence& sequence, FinishReason reason, TokenEvent event);
  void flush_and_end(Sequence& sequence, FinishReason reason, std::optional<Error> error);

  Engine::Parts& parts_;
  const EngineOptions options_;
  Mailbox& mailbox_;
  const int max_context_;
  std::vector<TokenId> model_end_tokens_;

  SequenceStore store_;
  BatchingKind batching_;
  std::unique_ptr<BatchingPolicy> policy_;
  std::optional<TimePoint> batch_forms_;  // when a batch that waits for more runs without
  Sampler sampler_;
  StepTimes step_times_;
  StepCostModel cost_;
  double keys_each_ = 0;  // that a row of the last step saw
  double run_s_ = 0;      // how long sequences ran, lately
  int max_running_;       // sequences, as the objective allows
  bool gave_up_ = false;  // the step before
  bool is_idle_ = false;
  std::vector<SchedSequence> running_views_;
  std::vector<SchedSequence> waiting_views_;
  std::vector<SequenceRows> rows_;
  std::vector<TokenId> padding_;  // tokens of padding rows
  TimePoint step_end_{};
  int num_generated_ = 0;  // tokens, in this step

  mutable std::mutex snapshot_mutex_;
  EngineStats stats_;               // guarded by snapshot_mutex_
  std::deque<StepRecord> records_;  // guarded by snapshot_mutex_
};

}  // namespace headrace
