// A batch that runs to its end: who belongs to it, and when the next one may form. Shared by the
// static and the dynamic policy.
#pragma once

#include <span>
#include <vector>

#include "sched/policy.h"

namespace headrace {

class Batch {
 public:
  // Takes note of who has ended. Whoever runs without belonging to it (he came back from a stall,
  // or another policy had started him) belongs to it now.
  void update(const SchedulerInput& input);
  // Someone of it can go on.
  bool active(const SchedulerInput& input) const;
  // The next batch.
  void form(std::span<const SchedSequence> sequences);
  // Those of it that wait, in their order.
  std::vector<SchedSequence> waiting(const SchedulerInput& input) const;

  int num_ended() const { return num_ended_; }  // since it was formed

 private:
  bool has(SequenceId id) const;

  std::vector<SequenceId> members_;  // not ended; sorted
  int num_ended_ = 0;
};

// The earliest arrival of those that wait, and the delay. At least one waits.
TimePoint latest_start(const SchedulerInput& input, Duration delay);

// The plan of a step in which a batch is not full yet.
StepPlan wait_for_more(TimePoint until);

}  // namespace headrace
