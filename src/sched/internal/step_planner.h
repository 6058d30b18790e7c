// The parts that every policy makes its plan of: next rows of what decodes, chunks of prompts,
// starts, padding. Each part stays within what the ones before it left of rows, logits, places and
// blocks, and preempts as policy.h says. One object per call of schedule().
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sched/policy.h"

namespace headrace {

class StepPlanner {
 public:
  // All three, and what the input shows, outlive the planner.
  StepPlanner(const SchedulerLimits& limits, const SchedulerInput& input, KvManager& kv);

  void plan_decode();
  void plan_prefill();
  // In this order, until one cannot start.
  void start_waiting(std::span<const SchedSequence> waiting);
  // Of num_rows padding rows from this position on, as many as rows and places allow: returns how
  // many.
  int pad(int first_position, int num_rows, bool prefill);

  bool has_rows() const { return plan_.num_rows > 0; }
  StepPlan take_plan();

 private:
  struct Entry {
    const SchedSequence* sequence = nullptr;
    PlannedRows rows{};  // num_rows 0: none
    bool preempted = false;
  };

  int rows_left() const { return max_rows_ - plan_.num_rows; }
  int logits_left() const { return limits_.max_logit_rows - plan_.num_logits; }
  int blocks_left() const;
  bool gets_rows(const Entry& entry) const { return !entry.preempted && !entry.sequence->stalled; }

  int chunk_of(const SchedSequence& sequence, int num_computed);
  void add_with_room(std::size_t idx, int num_rows);
  int rows_with_blocks(const SchedSequence& sequence, int num_rows) const;
  void count(const PlannedRows& rows, bool prefill, int sign);

  bool preempt_below(std::size_t idx);
  bool preempt_stalled();
  void preempt(Entry& entry);

  int missing_blocks(int num_tokens, TableId table) const;
  int missing_blocks_of_running() const;
  std::optional<StartedSequence> start(const SchedSequence& sequence, int promised);
  int blocks_to_start(const SchedSequence& sequence, TableId table, int num_cached) const;

  const SchedulerLimits& limits_;
  KvManager& kv_;
  const int max_rows_;              // of this step
  const int max_sequences_;         // no more are started
  std::vector<Entry> entries_;      // running, highest rank first
  std::vector<std::size_t> order_;  // of entries, as planned
  std::vector<PlannedRows> new_rows_;
  int num_planned_ = 0;  // sequences with rows, and padding
  int num_active_ = 0;   // sequences that take a place
  StepPlan plan_;
};

}  // namespace headrace
