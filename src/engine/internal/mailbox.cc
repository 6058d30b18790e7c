#include "engine/internal/mailbox.h"

#include <algorithm>
#include <utility>

namespace headrace {

Status Mailbox::admit_locked(const AdmissionRequest& request) const {
  if (closed_) {
    return make_error(ErrorCode::kUnavailable,
                      "the server is shutting down and takes no new requests");
  }
  Backlog backlog = speed_;
  backlog.num_waiting = num_active_ - num_running_;
  backlog.num_running = num_running_;
  backlog.waiting_tokens = waiting_tokens_;
  const Admission admission = admit(request, backlog, limits_);
  if (admission.verdict == Admission::Verdict::kAccept) {
    return {};
  }
  retry_after_ = admission.retry_after;
  if (admission.verdict == Admission::Verdict::kLate) {
    return make_error(ErrorCode::kExhausted,
                      "{} requests wait: the first token is predicted in {:.0f} ms, later than the "
                      "{} allows; try again later",
                      backlog.num_waiting,
                      to_millis(admission.predicted_ttft),
                      admission.why);
  }
  if (admission.why == "tokens") {
    return make_error(ErrorCode::kExhausted,
                      "the queue is full: prompts of {} tokens wait; try again later, or raise "
                      "--max-queue-tokens",
                      backlog.waiting_tokens);
  }
  return make_error(ErrorCode::kExhausted,
                    "the queue is full: {} requests wait; try again later, or raise --max-queue",
                    backlog.num_waiting);
}

Status Mailbox::can_submit() const {
  const std::lock_guard lock(mutex_);
  return admit_locked({});
}

Duration Mailbox::retry_after() const {
  const std::lock_guard lock(mutex_);
  return retry_after_;
}

Result<SequenceId> Mailbox::submit(RequestSpec spec,
                                   std::shared_ptr<EventRing> ring,
                                   TimePoint now) {
  SequenceId id{};
  {
    const std::lock_guard lock(mutex_);
    AdmissionRequest request{.prompt_tokens = static_cast<int>(spec.prompt.size())};
    if (spec.deadline) {
      request.time_left = *spec.deadline - now;
    }
    HR_RETURN_IF_ERROR(admit_locked(request));
    id = SequenceId{next_id_++};
    ++num_active_;
    waiting_tokens_ += request.prompt_tokens;
    letters_.arrivals.push_back({id, std::move(spec), std::move(ring)});
  }
  letter_.notify_one();
  return id;
}

void Mailbox::cancel(SequenceId id) {
  {
    const std::lock_guard lock(mutex_);
    letters_.cancelled.push_back(id);
    if (may_give_up_ && std::ranges::binary_search(in_step_, id.value)) {
      give_up_.store(true, std::memory_order_relaxed);
    }
  }
  letter_.notify_one();
}

void Mailbox::poke() {
  {
    const std::lock_guard lock(mutex_);
    poked_ = true;
  }
  letter_.notify_one();
}

void Mailbox::set_batching(BatchingKind kind) {
  {
    const std::lock_guard lock(mutex_);
    batching_ = kind;
    poked_ = true;
  }
  letter_.notify_one();
}

BatchingKind Mailbox::batching() const {
  const std::lock_guard lock(mutex_);
  return batching_;
}

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    poked_ = true;  // a batch that waits for more waits in vain
  }
  letter_.notify_one();
}

void Mailbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    stopping_ = true;
    give_up_.store(true, std::memory_order_relaxed);
  }
  letter_.notify_one();
}

bool Mailbox::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

bool Mailbox::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

int Mailbox::num_active() const {
  const std::lock_guard lock(mutex_);
  return num_active_;
}

int Mailbox::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_active_ - num_running_;
}

bool Mailbox::wait_until_idle(Duration timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [this] { return num_active_ == 0; });
}

Mailbox::Letters Mailbox::take() {
  const std::lock_guard lock(mutex_);
  poked_ = false;
  return std::exchange(letters_, {});
}

void Mailbox::wait(std::optional<Duration> timeout) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] {
    return stopping_ || poked_ || !letters_.arrivals.empty() || !letters_.cancelled.empty();
  };
  if (timeout) {
    letter_.wait_for(lock, *timeout, ready);
  } else {
    letter_.wait(lock, ready);
  }
}

void Mailbox::set_running(int num_running) {
  const std::lock_guard lock(mutex_);
  num_running_ = num_running;
}

void Mailbox::set_speed(const Backlog& speed) {
  const std::lock_guard lock(mutex_);
  speed_ = speed;
}

void Mailbox::prompt_started(int prompt_tokens) {
  const std::lock_guard lock(mutex_);
  waiting_tokens_ -= prompt_tokens;
}

void Mailbox::request_ended(bool was_running) {
  const std::lock_guard lock(mutex_);
  --num_active_;
  num_running_ -= was_running ? 1 : 0;
  if (num_active_ == 0) {
    idle_.notify_all();
  }
}

void Mailbox::begin_step(std::span<const SequenceId> ids, bool may_give_up) {
  const std::lock_guard lock(mutex_);
  in_step_.clear();
  for (const SequenceId id : ids) {
    in_step_.push_back(id.value);
  }
  std::ranges::sort(in_step_);
  may_give_up_ = may_give_up;
  const bool cancelled = std::ranges::any_of(letters_.cancelled, [this](SequenceId id) {
    return std::ranges::binary_search(in_step_, id.value);
  });
  give_up_.store(stopping_ || (may_give_up && cancelled), std::memory_order_relaxed);
}

void Mailbox::end_step() {
  const std::lock_guard lock(mutex_);
  in_step_.clear();
  may_give_up_ = false;
}

}  // namespace headrace
