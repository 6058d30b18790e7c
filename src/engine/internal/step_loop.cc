#include "engine/internal/step_loop.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"

namespace headrace {

void StepTimes::add(int num_rows, bool has_prefill, Duration took) {
  constexpr double kWeight = 0.25;
  const auto update = [](double& mean, double value) {
    mean = mean == 0 ? value : mean + kWeight * (value - mean);
  };
  seen_[has_prefill ? 1 : 0] = true;
  if (has_prefill) {
    update(prefill_seconds_per_row_, to_seconds(took) / num_rows);
  } else {
    update(decode_seconds_, to_seconds(took));
  }
}

Duration StepTimes::expected(int num_rows, bool has_prefill) const {
  const double seconds = has_prefill ? prefill_seconds_per_row_ * num_rows : decode_seconds_;
  if (!seen_[has_prefill ? 1 : 0]) {
    return Duration::max();
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

StepLoop::StepLoop(Engine::Parts& parts,
                   const EngineOptions& options,
                   Mailbox& mailbox,
                   int max_context)
    : parts_(parts),
      options_(options),
      mailbox_(mailbox),
      max_context_(max_context),
      batching_(options.batching),
      policy_(make_policy(options.batching, options.scheduler)),
      max_running_(options.scheduler.max_sequences),
      padding_(static_cast<std::size_t>(options.scheduler.max_step_tokens), 0) {
  for (TokenId id = 0; id < parts_.tokenizer->vocab_size(); ++id) {
    if (parts_.tokenizer->is_end_of_generation(id)) {
      model_end_tokens_.push_back(id);
    }
  }
  stats_.kv = parts_.kv->occupancy();
}

bool StepLoop::step() {
  const TimePoint begin = parts_.clock->now();
  bool worked = take_letters();
  worked |= expire(begin);
  resume_stalled();
  const StepPlan plan = schedule(begin);
  apply(plan, begin);
  StepRecord record;
  if (plan.num_rows > 0) {
    compute(plan, record);
    record.duration = parts_.clock->now() - begin;
  }
  report_speed();
  record_step(plan, record);
  worked |= plan.num_rows > 0 || !plan.preempted.empty();
#ifdef HEADRACE_DCHECK
  check();
#endif
  if (!worked && !std::exchange(is_idle_, true)) {
    check();
  }
  is_idle_ = !worked;
  return worked;
}

bool StepLoop::take_letters() {
  Mailbox::Letters letters = mailbox_.take();
  for (Arrival& arrival : letters.arrivals) {
    accept(std::move(arrival));
  }
  for (const SequenceId id : letters.cancelled) {
    if (Sequence* const sequence = store_.find(id)) {
      flush_and_end(*sequence, FinishReason::kCancelled, std::nullopt);
    }
  }
  return !letters.arrivals.empty() || !letters.cancelled.empty();
}

void StepLoop::accept(Arrival arrival) {
  RequestSpec& spec = arrival.spec;
  OutputProcessor processor(*parts_.tokenizer, spec.stop, spec.min_tokens);
  auto sequence = std::make_unique<Sequence>(Sequence{.id = arrival.id,
                                                      .spec = std::move(spec),
                                                      .ring = std::move(arrival.ring),
                                                      .output_processor = std::move(processor)});
  Sequence& s = *sequence;
  s.tokens = std::move(s.spec.prompt);
  s.num_prompt = static_cast<int>(s.tokens.size());
  s.max_output = std::clamp(s.spec.max_tokens, 0, max_context_ - s.num_prompt);
  s.end_tokens = s.spec.stop_token_ids;
  if (!s.spec.ignore_eos) {
    s.end_tokens.insert(s.end_tokens.end(), model_end_tokens_.begin(), model_end_tokens_.end());
  }
  store_.add(std::move(sequence));
  if (s.max_output == 0 && !s.scoring()) {
    flush_and_end(s, FinishReason::kLength, std::nullopt);
  }
}

std::optional<TimePoint> StepLoop::expiry(const Sequence& sequence) const {
  std::optional<TimePoint> result = sequence.spec.deadline;
  if (options_.queue_timeout > Duration{0} && !sequence.started) {
    const TimePoint leaves = sequence.spec.arrival + options_.queue_timeout;
    result = result ? std::min(*result, leaves) : leaves;
  }
  return result;
}

std::optional<TimePoint> StepLoop::next_deadline() const {
  std::optional<TimePoint> next = batch_forms_;
  for (const Sequence* const sequence : store_.all()) {
    if (const std::optional<TimePoint> at = expiry(*sequence)) {
      next = next ? std::min(*next, *at) : *at;
    }
  }
  return next;
}

bool StepLoop::expire(TimePoint now) {
  bool any = false;
  for (Sequence* const sequence : store_.all()) {
    const std::optional<TimePoint> at = expiry(*sequence);
    if (!at || *at > now) {
      continue;
    }
    any = true;
    const double waited = to_millis(now - sequence->spec.arrival);
    flush_and_end(
        *sequence,
        FinishReason::kDeadline,
        sequence->started
            ? make_error(ErrorCode::kDeadline,
                         "the deadline passed after {:.0f} ms, with {} tokens generated",
                         waited,
                         sequence->num_output())
            : make_error(ErrorCode::kDeadline,
                         "waited {:.0f} ms in the queue, longer than allowed: try again later, or "
                         "raise the deadline or --queue-timeout",
                         waited));
  }
  return any;
}

void StepLoop::resume_stalled() {
  const auto resume = [](Sequence* sequence) {
    sequence->stalled = sequence->stalled && !sequence->ring->has_room();
  };
  std::ranges::for_each(store_.running(), resume);
  std::ranges::for_each(store_.waiting(), resume);
}

SchedSequence StepLoop::view_of(const Sequence& sequence) const {
  SchedSequence view{.id = sequence.id,
                     .tokens = sequence.tokens,
                     .num_computed = sequence.num_computed,
                     .has_table = sequence.table.has_value(),
                     .table = sequence.table.value_or(TableId{}),
                     .salt = sequence.spec.cache_salt,
                     .use_prefix_cache = !sequence.spec.prompt_logprobs,
                     .priority = sequence.spec.priority,
                     .stalled = sequence.stalled,
                     .arrival = sequence.spec.arrival};
  if (sequence.scoring()) {
    view.logits_from = sequence.num_scored;
  }
  return view;
}

StepPlan StepLoop::schedule(TimePoint now) {
  if (const BatchingKind wanted = mailbox_.batching(); wanted != batching_) {
    batching_ = wanted;
    policy_ = make_policy(wanted, options_.scheduler);
  }
  batch_forms_.reset();
  running_views_.clear();
  waiting_views_.clear();
  bool any = false;
  for (const Sequence* const sequence : store_.running()) {
    running_views_.push_back(view_of(*sequence));
    any |= !sequence->stalled;
  }
  for (const Sequence* const sequence : store_.waiting()) {
    if (static_cast<int>(waiting_views_.size()) == policy_->lookahead()) {
      break;
    }
    if (!sequence->stalled) {
      waiting_views_.push_back(view_of(*sequence));
      any = true;
    }
  }
  if (!any) {
    return {};
  }
  SchedulerInput input{.running = running_views_,
                       .waiting = waiting_views_,
                       .now = now,
                       .more_may_come = !mailbox_.closed()};
  pace(input);
  StepPlan plan = policy_->schedule(input, *parts_.kv);
  batch_forms_ = plan.wait_until;
  HR_CHECK(plan.num_rows > 0 || plan.wait_until);
  HR_CHECK(plan.num_rows <= options_.scheduler.max_step_tokens);
  HR_CHECK(plan.num_logits <= options_.scheduler.max_logit_rows);
  return plan;
}

void StepLoop::apply(const StepPlan& plan, TimePoint now) {
  for (const SequenceId id : plan.preempted) {
    Sequence& sequence = *store_.find(id);
    if (parts_.metrics) {
      parts_.metrics->preemption(sequence.num_computed);
    }
    sequence.table.reset();
    sequence.num_scheduled = 0;
    sequence.num_computed = 0;
    sequence.num_committed = 0;
    store_.move(sequence, SequenceStatus::kWaiting);
  }
  for (const StartedSequence& started : plan.started) {
    Sequence& sequence = *store_.find(started.id);
    store_.move(sequence, SequenceStatus::kRunning);
    sequence.table = started.table;
    sequence.num_scheduled = started.num_cached;
    sequence.num_computed = started.num_cached;
    sequence.num_committed = started.num_cached;
    if (!sequence.started) {
      sequence.started = now;
      mailbox_.prompt_started(sequence.num_prompt);
      sequence.num_cached = std::min(started.num_cached, sequence.num_prompt);
      if (parts_.metrics) {
        parts_.metrics->queue_time(now - sequence.spec.arrival);
        parts_.metrics->prompt_tokens(sequence.num_prompt);
      }
    }
    if (parts_.metrics && !sequence.spec.prompt_logprobs) {
      parts_.metrics->prefix_cache(static_cast<int>(sequence.tokens.size()), started.num_cached);
    }
  }
  mailbox_.set_running(static_cast<int>(store_.running().size()));
}

void StepLoop::compute(const StepPlan& plan, StepRecord& record) {
  num_generated_ = 0;
  if (!forward(plan, record)) {
    step_end_ = parts_.clock->now();
    return;
  }
  step_end_ = parts_.clock->now();
  int logit_idx = 0;
  for (const PlannedRows& rows : plan.rows) {
    commit(rows, logit_idx);
    logit_idx += rows.num_logits;
  }
}

bool StepLoop::forward(const StepPlan& plan, StepRecord& record) {
  rows_.clear();
  std::vector<SequenceId> ids;
  for (const PlannedRows& rows : plan.rows) {
    Sequence& sequence = *store_.find(rows.id);
    HR_CHECK(rows.first_position == sequence.num_computed && sequence.table);
    sequence.num_scheduled = rows.first_position + rows.num_rows;
    rows_.push_back({.tokens = std::span<const TokenId>(sequence.tokens)
                                   .subspan(static_cast<std::size_t>(rows.first_position),
                                            static_cast<std::size_t>(rows.num_rows)),
                     .num_computed = rows.first_position,
                     .table = *sequence.table,
                     .num_logits = rows.num_logits});
    ids.push_back(rows.id);
  }
  for (const PaddingRows& rows : plan.padding) {
    rows_.push_back({.tokens = std::span(padding_).first(static_cast<std::size_t>(rows.num_rows)),
                     .num_computed = rows.first_position,
                     .table = kNoTable});
  }
  const bool has_prefill = plan.num_prefill_rows > 0;
  const bool is_long = step_times_.expected(plan.num_rows, has_prefill) >= options_.give_up_over;
  mailbox_.begin_step(ids, is_long && !gave_up_);
  const TimePoint begin = parts_.clock->now();
  bool done = false;
  std::string failure;
  try {
    done = parts_.runner->run(rows_, *parts_.kv, &mailbox_.give_up());
  } catch (const std::exception& error) {
    failure = error.what();
  }
  mailbox_.end_step();
  if (!failure.empty()) {
    fail_step(plan, failure);
    return false;
  }
  gave_up_ = !done;
  record.given_up = !done;
  if (done) {
    note_cost(plan, parts_.clock->now() - begin);
    step_times_.add(plan.num_rows, has_prefill, parts_.clock->now() - begin);
    return true;
  }
  for (const PlannedRows& rows : plan.rows) {
    Sequence& sequence = *store_.find(rows.id);
    sequence.num_scheduled = sequence.num_computed;
  }
  return false;
}

void StepLoop::fail_step(const StepPlan& plan, const std::string& what) {
  for (const PlannedRows& rows : plan.rows) {
    flush_and_end(*store_.find(rows.id),
                  FinishReason::kError,
                  make_error(ErrorCode::kInternal, "the model's step failed: {}", what));
  }
}

void StepLoop::record_step(const StepPlan& plan, const StepRecord& record) {
  const KvOccupancy kv = parts_.kv->occupancy();
  std::int64_t live = 0;
  std::int64_t held = 0;
  for (const Sequence* const sequence : store_.running()) {
    live += sequence->num_computed;
    held += static_cast<std::int64_t>(parts_.kv->blocks(*sequence->table, 0).size()) *
            parts_.kv->tokens_per_block();
  }
  const int running = static_cast<int>(store_.running().size());
  {
    const std::lock_guard lock(snapshot_mutex_);
    stats_.running = running;
    stats_.kv = kv;
    stats_.live_kv_tokens = live;
    if (plan.num_rows > 0) {
      StepRecord& kept = records_.emplace_back(record);
      kept.step = stats_.steps++;
      kept.num_rows = plan.num_rows;
      kept.num_prefill_rows = plan.num_prefill_rows;
      kept.num_running = running;
      kept.num_padding_rows = plan.num_padding_rows;
      kept.held_kv_slots = held;
      kept.live_kv_tokens = live;
      kept.num_sequences = static_cast<int>(plan.rows.size());
      kept.num_preempted = static_cast<int>(plan.preempted.size());
      kept.num_started = static_cast<int>(plan.started.size());
      for (const StartedSequence& started : plan.started) {
        kept.num_cached_tokens += started.num_cached;
      }
      while (static_cast<int>(records_.size()) > options_.num_step_records) {
        records_.pop_front();
      }
    }
  }
  if (parts_.metrics) {
    parts_.metrics->running_waiting(running, mailbox_.num_waiting());
    const double waste =
        held == 0 ? 0 : static_cast<double>(held - live) / static_cast<double>(held);
    parts_.metrics->kv_usage(static_cast<double>(kv.used) / kv.num_blocks, waste);
    if (plan.num_rows > 0) {
      parts_.metrics->step(record.duration, plan.num_rows);
      parts_.metrics->generation_tokens(std::exchange(num_generated_, 0));
    }
  }
}

EngineStats StepLoop::stats() const {
  const std::lock_guard lock(snapshot_mutex_);
  return stats_;
}

std::vector<StepRecord> StepLoop::records() const {
  const std::lock_guard lock(snapshot_mutex_);
  return {records_.begin(), records_.end()};
}

void StepLoop::end_all(FinishReason reason) {
  take_letters();
  for (Sequence* const sequence : store_.all()) {
    flush_and_end(*sequence, reason, std::nullopt);
  }
  record_step({}, {});
}

void StepLoop::check() const {
  store_.check();
  parts_.kv->check();
}

}  // namespace headrace
