#include <algorithm>
#include <array>
#include <limits>

#include "sched/internal/batch.h"
#include "sched/internal/policies.h"
#include "sched/internal/step_planner.h"

namespace headrace {
namespace {

class DynamicPolicy final : public BatchingPolicy {
 public:
  explicit DynamicPolicy(const SchedulerLimits& limits) : limits_(limits) {}

  std::string_view name() const override { return name_of(BatchingKind::kDynamic); }
  int lookahead() const override { return std::numeric_limits<int>::max(); }

  StepPlan schedule(const SchedulerInput& input, KvManager& kv) override {
    batch_.update(input);
    if (!batch_.active(input) && !input.waiting.empty()) {
      const TimePoint latest = latest_start(input, limits_.batch_delay);
      const int size = size_now(static_cast<int>(input.waiting.size()),
                                input.now >= latest || !input.more_may_come);
      if (size == 0) {
        return wait_for_more(latest);
      }
      batch_.form(input.waiting.first(static_cast<std::size_t>(size)));
    }
    StepPlanner planner(limits_, input, kv);
    planner.plan_decode();
    planner.plan_prefill();
    planner.start_waiting(batch_.waiting(input));
    return planner.take_plan();
  }

 private:
  // The largest preferred size that is there, or all when the time is up; 0: not yet.
  int size_now(int num_waiting, bool time_is_up) const {
    const int most = limits_.max_sequences;
    if (time_is_up) {
      return std::min(num_waiting, most);
    }
    for (const int size : {most, most / 2, most / 4}) {
      if (size >= 1 && num_waiting >= size) {
        return size;
      }
    }
    return 0;
  }

  const SchedulerLimits limits_;
  Batch batch_;
};

}  // namespace

std::unique_ptr<BatchingPolicy> make_dynamic_policy(const SchedulerLimits& limits) {
  return std::make_unique<DynamicPolicy>(limits);
}

}  // namespace headrace
