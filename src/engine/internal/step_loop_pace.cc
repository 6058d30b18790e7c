// What the measured cost of steps is good for: how large the next one may be, and how fast the
// backlog goes.
#include <algorithm>

#include "engine/internal/step_loop.h"

namespace headrace {
namespace {

constexpr double kHeadroom = 0.8;  // of an objective: predictions are not exact
constexpr int kLeastChunk = 16;    // prefill goes on, however slow a step is

Duration with_headroom(Duration limit) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(to_seconds(limit) * kHeadroom));
}

}  // namespace

void StepLoop::note_cost(const StepPlan& plan, Duration took) {
  StepShape shape{.num_decode_rows = plan.num_rows - plan.num_prefill_rows,
                  .num_prefill_rows = plan.num_prefill_rows};
  const auto count = [&shape](int first, int num_rows) {
    shape.num_keys += num_rows * (first + (num_rows + 1) / 2.0);
  };
  for (const PlannedRows& rows : plan.rows) {
    count(rows.first_position, rows.num_rows);
  }
  for (const PaddingRows& rows : plan.padding) {
    count(rows.first_position, rows.num_rows);
  }
  keys_each_ = shape.num_keys / plan.num_rows;
  cost_.observe(shape, took);
}

// With an objective between tokens: as many sequences, and prefill rows beside them, as a step
// within it can hold.
void StepLoop::pace(SchedulerInput& input) {
  if (options_.slo_itl <= Duration{0} || !cost_.ready()) {
    return;
  }
  const Duration limit = with_headroom(options_.slo_itl);
  int most = options_.scheduler.max_sequences;
  const auto decode = [this](int num_rows) {
    return StepShape{.num_decode_rows = num_rows, .num_keys = keys_each_ * num_rows};
  };
  while (most > 1 && cost_.predict(decode(most)) > limit) {
    --most;
  }
  max_running_ = most;
  input.max_sequences = most;
  const auto num_active = static_cast<int>(std::ranges::count(
      input.running, false, [](const SchedSequence& sequence) { return sequence.stalled; }));
  if (num_active > 0) {
    const int room = std::max(0, options_.scheduler.max_step_tokens - num_active);
    input.max_step_rows = num_active + std::max(kLeastChunk,
                                                cost_.prefill_rows_within(
                                                    decode(num_active), keys_each_, limit, room));
  }
}

void StepLoop::report_speed() {
  Backlog speed{.max_running = max_running_, .run_s = run_s_};
  for (const Sequence* const sequence : store_.running()) {
    speed.prefill_tokens += std::max(0, sequence->num_prompt - sequence->num_computed);
  }
  if (cost_.ready()) {
    const auto num_running = static_cast<int>(store_.running().size());
    const int chunk = std::max(1, options_.scheduler.max_step_tokens - num_running);
    const StepShape step{.num_decode_rows = num_running,
                         .num_prefill_rows = chunk,
                         .num_keys = keys_each_ * (num_running + chunk)};
    speed.prefill_tokens_per_s = chunk / std::max(1e-6, to_seconds(cost_.predict(step)));
  }
  mailbox_.set_speed(speed);
}

}  // namespace headrace
