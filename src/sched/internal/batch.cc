#include "sched/internal/batch.h"

#include <algorithm>

#include "base/check.h"

namespace headrace {
namespace {

// By value: clang-tidy 14 takes the comparison that <=> makes of StrongId for a null pointer.
bool before(SequenceId a, SequenceId b) { return a.value < b.value; }

}  // namespace

bool Batch::has(SequenceId id) const {
  return std::binary_search(members_.begin(), members_.end(), id, before);
}

void Batch::update(const SchedulerInput& input) {
  std::vector<SequenceId> present;
  for (const SchedSequence& sequence : input.running) {
    present.push_back(sequence.id);
  }
  const std::vector<SchedSequence> waits = waiting(input);
  for (const SchedSequence& sequence : waits) {
    present.push_back(sequence.id);
  }
  std::sort(present.begin(), present.end(), before);
  for (const SequenceId id : members_) {
    num_ended_ += std::binary_search(present.begin(), present.end(), id, before) ? 0 : 1;
  }
  members_ = std::move(present);
}

bool Batch::active(const SchedulerInput& input) const {
  return std::ranges::any_of(input.running,
                             [](const SchedSequence& sequence) { return !sequence.stalled; }) ||
         !waiting(input).empty();
}

void Batch::form(std::span<const SchedSequence> sequences) {
  num_ended_ = 0;
  for (const SchedSequence& sequence : sequences) {
    members_.push_back(sequence.id);
  }
  std::sort(members_.begin(), members_.end(), before);
}

std::vector<SchedSequence> Batch::waiting(const SchedulerInput& input) const {
  std::vector<SchedSequence> result;
  std::ranges::copy_if(input.waiting,
                       std::back_inserter(result),
                       [this](const SchedSequence& sequence) { return has(sequence.id); });
  return result;
}

TimePoint latest_start(const SchedulerInput& input, Duration delay) {
  HR_CHECK(!input.waiting.empty());
  return std::ranges::min_element(input.waiting, {}, &SchedSequence::arrival)->arrival + delay;
}

StepPlan wait_for_more(TimePoint until) {
  StepPlan plan;
  plan.wait_until = until;
  plan.why = "batch";
  return plan;
}

}  // namespace headrace
