#include <algorithm>
#include <limits>
#include <vector>

#include "sched/internal/batch.h"
#include "sched/internal/policies.h"
#include "sched/internal/step_planner.h"

namespace headrace {
namespace {

class StaticPolicy final : public BatchingPolicy {
 public:
  explicit StaticPolicy(const SchedulerLimits& limits) : limits_(limits) {}

  std::string_view name() const override { return name_of(BatchingKind::kStatic); }
  int lookahead() const override { return std::numeric_limits<int>::max(); }

  StepPlan schedule(const SchedulerInput& input, KvManager& kv) override {
    batch_.update(input);
    if (!batch_.active(input) && !input.waiting.empty()) {
      const TimePoint latest = latest_start(input, limits_.batch_delay);
      const auto full = static_cast<std::size_t>(limits_.max_sequences);
      if (input.waiting.size() < full && input.now < latest && input.more_may_come) {
        return wait_for_more(latest);
      }
      form(input.waiting.first(std::min(input.waiting.size(), full)));
    }
    StepPlanner planner(limits_, input, kv);
    planner.plan_prefill();
    planner.start_waiting(batch_.waiting(input));
    pad_prompts(planner);
    if (!planner.has_rows()) {
      planner.plan_decode();
      if (planner.has_rows()) {
        pad_ended(planner, input);
      }
    }
    return planner.take_plan();
  }

 private:
  void form(std::span<const SchedSequence> sequences) {
    batch_.form(sequences);
    std::size_t longest = 0;
    for (const SchedSequence& sequence : sequences) {
      longest = std::max(longest, sequence.tokens.size());
    }
    prompt_padding_.clear();
    for (const SchedSequence& sequence : sequences) {
      const std::size_t missing = longest - sequence.tokens.size();
      if (missing > 0) {
        prompt_padding_.push_back(
            {static_cast<int>(sequence.tokens.size()), static_cast<int>(missing)});
      }
    }
  }

  // What the prompts lack to be as long as the longest, as far as this step has room.
  void pad_prompts(StepPlanner& planner) {
    while (!prompt_padding_.empty()) {
      PaddingRows& rows = prompt_padding_.back();
      const int num_rows = planner.pad(rows.first_position, rows.num_rows, true);
      if (num_rows == 0) {
        return;
      }
      rows.first_position += num_rows;
      rows.num_rows -= num_rows;
      if (rows.num_rows == 0) {
        prompt_padding_.pop_back();
      }
    }
  }

  // A row for each that has ended, as deep in its context as the furthest that still runs.
  void pad_ended(StepPlanner& planner, const SchedulerInput& input) const {
    int position = 0;
    for (const SchedSequence& sequence : input.running) {
      position = std::max(position, sequence.num_computed);
    }
    for (int i = 0; i < batch_.num_ended() && planner.pad(position, 1, false) == 1; ++i) {
    }
  }

  const SchedulerLimits limits_;
  Batch batch_;
  std::vector<PaddingRows> prompt_padding_;  // of the batch, not planned yet
};

}  // namespace

std::unique_ptr<BatchingPolicy> make_static_policy(const SchedulerLimits& limits) {
  return std::make_unique<StaticPolicy>(limits);
}

}  // namespace headrace
