#include "sched/internal/step_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace headrace {
namespace {

bool is_decoding(const SchedSequence& sequence) {
  return sequence.num_computed == static_cast<int>(sequence.tokens.size()) - 1;
}

PlannedRows make_rows(const SchedSequence& sequence, int start, int num_rows) {
  const int end = start + num_rows;
  PlannedRows rows{.id = sequence.id, .first_position = start, .num_rows = num_rows};
  rows.completes = end == static_cast<int>(sequence.tokens.size());
  rows.num_logits =
      std::clamp(end - std::max(start, std::min(sequence.logits_from, end)), 0, num_rows);
  rows.num_logits = std::max(rows.num_logits, rows.completes ? 1 : 0);
  return rows;
}

}  // namespace

StepPlanner::StepPlanner(const SchedulerLimits& limits, const SchedulerInput& input, KvManager& kv)
    : limits_(limits),
      kv_(kv),
      max_rows_(std::min(limits.max_step_tokens, input.max_step_rows)),
      max_sequences_(std::min(limits.max_sequences, input.max_sequences)) {
  for (const SchedSequence& sequence : input.running) {
    entries_.push_back({.sequence = &sequence});
    num_active_ += sequence.stalled ? 0 : 1;
  }
  std::ranges::stable_sort(entries_, [](const Entry& a, const Entry& b) {
    return a.sequence->stalled != b.sequence->stalled ? b.sequence->stalled
                                                      : a.sequence->priority < b.sequence->priority;
  });
}

int StepPlanner::blocks_left() const {
  const KvOccupancy occupancy = kv_.occupancy();
  return occupancy.free + occupancy.cached;
}

void StepPlanner::plan_decode() {
  // What the highest needs to progress in the second pass is not given away in the first.
  const bool keep_one =
      !entries_.empty() && gets_rows(entries_[0]) && !is_decoding(*entries_[0].sequence);
  const int kept = keep_one ? 1 : 0;
  for (std::size_t idx = 0; idx < entries_.size(); ++idx) {
    Entry& entry = entries_[idx];
    if (!gets_rows(entry) || !is_decoding(*entry.sequence)) {
      continue;
    }
    if (num_planned_ >= limits_.max_sequences - kept) {
      plan_.why = "sequences";
    } else if (rows_left() <= kept) {
      plan_.why = "budget";
    } else if (logits_left() <= kept) {
      plan_.why = "logits";
    } else {
      add_with_room(idx, 1);
    }
  }
}

void StepPlanner::plan_prefill() {
  for (std::size_t idx = 0; idx < entries_.size(); ++idx) {
    const Entry& entry = entries_[idx];
    if (!gets_rows(entry) || is_decoding(*entry.sequence)) {
      continue;
    }
    if (num_planned_ >= limits_.max_sequences) {
      plan_.why = "sequences";
      return;
    }
    const int num_rows = chunk_of(*entry.sequence, entry.sequence->num_computed);
    if (num_rows > 0) {
      add_with_room(idx, num_rows);
    }
  }
}

// The rows that the budgets allow; 0 with the reason set.
int StepPlanner::chunk_of(const SchedSequence& sequence, int num_computed) {
  const int remaining = static_cast<int>(sequence.tokens.size()) - num_computed;
  const int without_logits = std::max(0, sequence.logits_from - num_computed);
  int num_rows = std::min(remaining, rows_left());
  if (num_rows <= 0) {
    plan_.why = "budget";
    return 0;
  }
  if (num_rows - without_logits > logits_left()) {
    num_rows = without_logits + logits_left();
  }
  if (num_rows == remaining && without_logits >= remaining && logits_left() == 0) {
    --num_rows;
  }
  if (num_rows == 0) {
    plan_.why = "logits";
  }
  return num_rows;
}

// Plans up to num_rows rows: as many as the blocks allow; preempts from the lowest rank if that
// is none.
void StepPlanner::add_with_room(std::size_t idx, int num_rows) {
  const SchedSequence& sequence = *entries_[idx].sequence;
  const int start = sequence.num_computed;
  int fitting = rows_with_blocks(sequence, num_rows);
  while (fitting == 0 && preempt_below(idx)) {
    fitting = rows_with_blocks(sequence, num_rows);
  }
  if (fitting == 0) {
    plan_.why = "blocks";
    return;
  }
  HR_CHECK(kv_.reserve(sequence.table, start, start + fitting));
  entries_[idx].rows = make_rows(sequence, start, fitting);
  count(entries_[idx].rows, !is_decoding(sequence), 1);
  order_.push_back(idx);
}

int StepPlanner::rows_with_blocks(const SchedSequence& sequence, int num_rows) const {
  const int start = sequence.num_computed;
  const int left = blocks_left();
  int fitting = 0;
  int too_many = num_rows + 1;
  while (too_many - fitting > 1) {
    const int middle = too_many == num_rows + 1 ? num_rows : fitting + (too_many - fitting) / 2;
    if (kv_.blocks_needed(sequence.table, start, start + middle) <= left) {
      fitting = middle;
    } else {
      too_many = middle;
    }
  }
  return fitting;
}

void StepPlanner::count(const PlannedRows& rows, bool prefill, int sign) {
  plan_.num_rows += sign * rows.num_rows;
  plan_.num_logits += sign * rows.num_logits;
  plan_.num_prefill_rows += prefill ? sign * rows.num_rows : 0;
  num_planned_ += sign;
}

// Closes the table of the lowest sequence that ranks below idx; false if there is none.
bool StepPlanner::preempt_below(std::size_t idx) {
  for (std::size_t victim = entries_.size(); victim-- > idx + 1;) {
    if (!entries_[victim].preempted) {
      preempt(entries_[victim]);
      return true;
    }
  }
  return false;
}

bool StepPlanner::preempt_stalled() {
  for (std::size_t victim = entries_.size(); victim-- > 0 && entries_[victim].sequence->stalled;) {
    if (!entries_[victim].preempted) {
      preempt(entries_[victim]);
      return true;
    }
  }
  return false;
}

void StepPlanner::preempt(Entry& entry) {
  kv_.close(entry.sequence->table);
  entry.preempted = true;
  plan_.preempted.push_back(entry.sequence->id);
  num_active_ -= entry.sequence->stalled ? 0 : 1;
  if (entry.rows.num_rows > 0) {
    count(entry.rows, !is_decoding(*entry.sequence), -1);
  }
}

// Blocks that a sequence of this many tokens still takes until its text is computed.
int StepPlanner::missing_blocks(int num_tokens, TableId table) const {
  return std::max(0,
                  kv_.max_blocks_for(num_tokens, limits_.max_step_tokens) - kv_.held_blocks(table));
}

int StepPlanner::missing_blocks_of_running() const {
  int sum = 0;
  for (const Entry& entry : entries_) {
    if (gets_rows(entry)) {
      sum += missing_blocks(static_cast<int>(entry.sequence->tokens.size()), entry.sequence->table);
    }
  }
  return sum;
}

void StepPlanner::start_waiting(std::span<const SchedSequence> waiting) {
  int promised = missing_blocks_of_running();
  for (const SchedSequence& sequence : waiting) {
    if (num_active_ >= max_sequences_ || num_planned_ >= limits_.max_sequences) {
      plan_.why = "sequences";
      return;
    }
    if (rows_left() <= 0) {
      plan_.why = "budget";
      return;
    }
    const std::optional<StartedSequence> started = start(sequence, promised);
    if (!started) {
      return;
    }
    promised += missing_blocks(static_cast<int>(sequence.tokens.size()), started->table);
  }
  if (plan_.why.empty()) {
    plan_.why = "nothing waits";
  }
}

// Blocks of which a new sequence's table has to be sure.
int StepPlanner::blocks_to_start(const SchedSequence& sequence,
                                 TableId table,
                                 int num_cached) const {
  const int num_tokens = static_cast<int>(sequence.tokens.size());
  const int missing = missing_blocks(num_tokens, table);
  if (limits_.reserved_tokens == 0) {
    return missing;
  }
  const int whole =
      kv_.blocks_needed(table, num_cached, std::max(limits_.reserved_tokens, num_tokens));
  // Alone, with less memory than a whole reservation, it takes what it needs.
  return num_active_ == 0 && whole > blocks_left() ? missing : std::max(whole, missing);
}

std::optional<StartedSequence> StepPlanner::start(const SchedSequence& sequence, int promised) {
  const TableId table = kv_.open(sequence.salt);
  const int num_cached = sequence.use_prefix_cache ? kv_.match_prefix(table, sequence.tokens) : 0;
  const int watermark = static_cast<int>(std::ceil(limits_.watermark * kv_.num_blocks()));
  // Alone, a sequence needs no reserve: nothing else can run out.
  const int reserve = num_active_ > 0 ? promised + watermark : 0;
  const auto needed = [&] { return blocks_to_start(sequence, table, num_cached) + reserve; };
  while (needed() > blocks_left() && preempt_stalled()) {
  }
  const bool fits = needed() <= blocks_left();
  const int num_rows = fits ? chunk_of(sequence, num_cached) : 0;
  if (num_rows == 0) {
    plan_.why = fits ? plan_.why : "blocks";
    kv_.close(table);
    return std::nullopt;
  }
  const int chunk_end = num_cached + num_rows;
  const bool whole = limits_.reserved_tokens > chunk_end &&
                     kv_.reserve(table, num_cached, limits_.reserved_tokens);
  HR_CHECK(whole || kv_.reserve(table, num_cached, chunk_end));
  const PlannedRows rows = make_rows(sequence, num_cached, num_rows);
  count(rows, true, 1);
  new_rows_.push_back(rows);
  plan_.started.push_back({sequence.id, table, num_cached});
  ++num_active_;
  return plan_.started.back();
}

int StepPlanner::pad(int first_position, int num_rows, bool prefill) {
  const int fitting = num_planned_ < limits_.max_sequences ? std::min(num_rows, rows_left()) : 0;
  if (fitting <= 0) {
    return 0;
  }
  plan_.padding.push_back({first_position, fitting});
  plan_.num_rows += fitting;
  plan_.num_prefill_rows += prefill ? fitting : 0;
  plan_.num_padding_rows += fitting;
  ++num_planned_;
  return fitting;
}

StepPlan StepPlanner::take_plan() {
  for (const std::size_t idx : order_) {
    if (!entries_[idx].preempted) {
      plan_.rows.push_back(entries_[idx].rows);
    }
  }
  plan_.rows.insert(plan_.rows.end(), new_rows_.begin(), new_rows_.end());
  return std::move(plan_);
}

}  // namespace headrace
