// All sequences that have not ended, each in exactly one list. One thread (the engine's).
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/internal/sequence.h"

namespace headrace {

class SequenceStore {
 public:
  // Waiting sequences stand by priority, then arrival, so a preempted one is in front of its
  // equals. Who waits rises by one priority each kAgeing, so that no one waits for ever: the order
  // of two never changes, it is that of arrival + priority x kAgeing.
  static constexpr Duration kAgeing = std::chrono::seconds(10);
  struct StartsBefore {
    static TimePoint due(const Sequence& sequence) {
      constexpr int kMost = 1'000'000;
      return sequence.spec.arrival + kAgeing * std::clamp(sequence.spec.priority, -kMost, kMost);
    }
    bool operator()(const Sequence* a, const Sequence* b) const {
      const TimePoint due_a = due(*a);
      const TimePoint due_b = due(*b);
      return due_a != due_b ? due_a < due_b : a->id.value < b->id.value;
    }
  };
  using WaitingList = std::set<Sequence*, StartsBefore>;

  void add(std::unique_ptr<Sequence> sequence);  // waits
  Sequence* find(SequenceId id) const;           // null: has ended
  void move(Sequence& sequence, SequenceStatus to);
  void erase(Sequence& sequence);

  const std::vector<Sequence*>& running() const { return running_; }  // oldest first
  const WaitingList& waiting() const { return waiting_; }
  bool empty() const { return all_.empty(); }
  std::vector<Sequence*> all() const;  // oldest first
  void check() const;

 private:
  void remove_from_list(Sequence& sequence);

  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> all_;
  std::vector<Sequence*> running_;
  WaitingList waiting_;
};

}  // namespace headrace
