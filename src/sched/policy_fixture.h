// For the policies' tests: the engine's part in small, the lists and a plan applied to them, with
// blocks of four tokens.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "sched/policy.h"

namespace headrace::testing {

inline constexpr int kBlock = 4;

class Lists {
 public:
  Lists(const SchedulerLimits& limits,
        int num_blocks,
        BatchingKind kind = BatchingKind::kContinuous)
      : kv({{}}, num_blocks, kBlock, true), policy_(make_policy(kind, limits)) {}

  // A sequence whose tokens begin with `first` and count up.
  SchedSequence& add(std::uint64_t id, int num_tokens, TokenId first) {
    std::vector<TokenId>& tokens = texts_.emplace_back(static_cast<std::size_t>(num_tokens));
    std::iota(tokens.begin(), tokens.end(), first);
    texts_.back().reserve(4096);
    waiting.push_back({.id = SequenceId{id}, .tokens = tokens, .arrival = now});
    return waiting.back();
  }

  StepPlan step() {
    const std::vector<SchedSequence> run(running.begin(), running.end());
    const std::vector<SchedSequence> wait(waiting.begin(), waiting.end());
    StepPlan plan = policy_->schedule(
        {.running = run, .waiting = wait, .now = now, .more_may_come = more_may_come}, kv);
    for (const SequenceId id : plan.preempted) {
      SchedSequence sequence = take(running, id);
      sequence.has_table = false;
      sequence.num_computed = 0;
      waiting.push_front(sequence);
    }
    for (const StartedSequence& started : plan.started) {
      SchedSequence sequence = take(waiting, started.id);
      sequence.has_table = true;
      sequence.table = started.table;
      sequence.num_computed = started.num_cached;
      running.push_back(sequence);
    }
    std::ranges::sort(running, {}, [](const SchedSequence& s) { return s.id; });
    for (const PlannedRows& rows : plan.rows) {
      apply(rows);
    }
    kv.check();
    return plan;
  }

  SchedSequence& find(std::uint64_t id) {
    return *std::ranges::find(running, SequenceId{id}, [](const SchedSequence& s) { return s.id; });
  }

  // It has ended.
  void end(std::uint64_t id) { kv.close(take(running, SequenceId{id}).table); }

  KvManager kv;
  TimePoint now{};
  bool more_may_come = true;
  std::deque<SchedSequence> running;
  std::deque<SchedSequence> waiting;

 private:
  static SchedSequence take(std::deque<SchedSequence>& list, SequenceId id) {
    const auto found = std::ranges::find(list, id, [](const SchedSequence& s) { return s.id; });
    SchedSequence sequence = *found;
    list.erase(found);
    return sequence;
  }

  void apply(const PlannedRows& rows) {
    SchedSequence& sequence = find(rows.id.value);
    EXPECT_EQ(sequence.num_computed, rows.first_position);
    sequence.num_computed += rows.num_rows;
    kv.commit(sequence.table,
              sequence.tokens.first(static_cast<std::size_t>(sequence.num_computed)));
    if (rows.completes) {
      for (std::vector<TokenId>& tokens : texts_) {
        if (tokens.data() == sequence.tokens.data()) {
          tokens.push_back(9000 + static_cast<TokenId>(tokens.size()));
          sequence.tokens = tokens;
        }
      }
    }
  }

  std::unique_ptr<BatchingPolicy> policy_;
  std::deque<std::vector<TokenId>> texts_;
};

// "id:first+rows", with "*" where the rows complete.
inline std::vector<std::string> rows_of(const StepPlan& plan) {
  std::vector<std::string> result;
  for (const PlannedRows& rows : plan.rows) {
    result.push_back(std::to_string(rows.id.value) + ":" + std::to_string(rows.first_position) +
                     "+" + std::to_string(rows.num_rows) + (rows.completes ? "*" : ""));
  }
  return result;
}

inline std::vector<std::uint64_t> preempted(const StepPlan& plan) {
  std::vector<std::uint64_t> result;
  for (const SequenceId id : plan.preempted) {
    result.push_back(id.value);
  }
  return result;
}

// "first+rows" of the padding.
inline std::vector<std::string> padding_of(const StepPlan& plan) {
  std::vector<std::string> result;
  for (const PaddingRows& rows : plan.padding) {
    result.push_back(std::to_string(rows.first_position) + "+" + std::to_string(rows.num_rows));
  }
  return result;
}

}  // namespace headrace::testing
