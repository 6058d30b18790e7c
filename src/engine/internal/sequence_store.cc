#include "engine/internal/sequence_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace {
namespace {

// By value: clang-tidy 14 takes the comparison that <=> makes of StrongId for a null pointer.
constexpr auto kById = [](const Sequence* sequence) { return sequence->id.value; };

}  // namespace

void SequenceStore::add(std::unique_ptr<Sequence> sequence) {
  HR_CHECK(sequence->status == SequenceStatus::kWaiting);
  waiting_.insert(sequence.get());
  const SequenceId id = sequence->id;
  HR_CHECK(all_.emplace(id, std::move(sequence)).second);
}

Sequence* SequenceStore::find(SequenceId id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second.get();
}

void SequenceStore::remove_from_list(Sequence& sequence) {
  if (sequence.status == SequenceStatus::kWaiting) {
    HR_CHECK(waiting_.erase(&sequence) == 1);
  } else {
    const auto at = std::ranges::lower_bound(running_, sequence.id.value, {}, kById);
    HR_CHECK(at != running_.end() && *at == &sequence);
    running_.erase(at);
  }
}

void SequenceStore::move(Sequence& sequence, SequenceStatus to) {
  HR_CHECK(sequence.status != to);
  remove_from_list(sequence);
  sequence.status = to;
  if (to == SequenceStatus::kWaiting) {
    HR_CHECK(waiting_.insert(&sequence).second);
  } else {
    running_.insert(std::ranges::lower_bound(running_, sequence.id.value, {}, kById), &sequence);
  }
}

void SequenceStore::erase(Sequence& sequence) {
  remove_from_list(sequence);
  HR_CHECK(all_.erase(sequence.id) == 1);
}

std::vector<Sequence*> SequenceStore::all() const {
  std::vector<Sequence*> result(running_);
  result.insert(result.end(), waiting_.begin(), waiting_.end());
  std::ranges::sort(result, {}, kById);
  return result;
}

void SequenceStore::check() const {
  HR_CHECK(running_.size() + waiting_.size() == all_.size());
  HR_CHECK(std::ranges::is_sorted(running_, {}, kById));
  for (const auto& [id, sequence] : all_) {
    const bool is_running = std::ranges::binary_search(running_, id.value, {}, kById);
    HR_CHECK(is_running == (sequence->status == SequenceStatus::kRunning));
    HR_CHECK(is_running != waiting_.contains(sequence.get()));
    HR_CHECK(is_running == sequence->table.has_value());
    HR_CHECK(sequence->num_committed <= sequence->num_computed || !is_running);
    HR_CHECK(sequence->num_computed <= sequence->num_scheduled);
    HR_CHECK(sequence->num_scheduled <= static_cast<int>(sequence->tokens.size()));
  }
}

}  // namespace headrace
