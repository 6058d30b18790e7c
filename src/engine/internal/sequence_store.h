// All sequences that have not ended, each in exactly one list. One thread (the engine's).
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/internal/sequence.h"

namespace headrace {

class SequenceStore {
 public:
  // Waiting sequences stand by priority, then arrival, so a preempted one is in front of its
  // equals.
  struct StartsBefore {
    bool operator()(const Sequence* a, const Sequence* b) const {
      return a->spec.priority != b->spec.priority ? a->spec.priority < b->spec.priority
                                                  : a->id.value < b->id.value;
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
