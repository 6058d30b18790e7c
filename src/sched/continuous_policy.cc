#include "sched/internal/policies.h"
#include "sched/internal/step_planner.h"

namespace headrace {
namespace {

class ContinuousPolicy final : public BatchingPolicy {
 public:
  explicit ContinuousPolicy(const SchedulerLimits& limits) : limits_(limits) {}

  std::string_view name() const override { return name_of(BatchingKind::kContinuous); }
  int lookahead() const override { return limits_.max_sequences; }

  StepPlan schedule(const SchedulerInput& input, KvManager& kv) override {
    StepPlanner planner(limits_, input, kv);
    planner.plan_decode();
    planner.plan_prefill();
    planner.start_waiting(input.waiting);
    return planner.take_plan();
  }

 private:
  const SchedulerLimits limits_;
};

}  // namespace

std::unique_ptr<BatchingPolicy> make_continuous_policy(const SchedulerLimits& limits) {
  return std::make_unique<ContinuousPolicy>(limits);
}

}  // namespace headrace
