#include "engine/internal/event_ring.h"

#include <utility>

#include "base/check.h"

namespace headrace {

EventRing::EventRing(int capacity) : capacity_(static_cast<std::size_t>(capacity)) {
  HR_CHECK(capacity >= 1);
}

bool EventRing::push(TokenEvent event) {
  bool room = true;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    HR_CHECK(!ended_.load(std::memory_order_relaxed));
    const bool last = event.finish.has_value();
    HR_CHECK(last || events_.size() < capacity_);
    events_.push_back(std::move(event));
    if (last) {
      ended_.store(true, std::memory_order_release);
    }
    room = events_.size() < capacity_;
    writer_waits_ = !room && !last;
    wake = std::exchange(reader_sleeps_, false);
  }
  filled_.notify_one();
  if (wake) {
    const std::lock_guard lock(waker_mutex_);
    if (waker_) {
      waker_();
    }
  }
  return room;
}

bool EventRing::has_room() const {
  const std::lock_guard lock(mutex_);
  return events_.size() <= room_mark();
}

void EventRing::set_prompt_scores(std::vector<SampledToken> scores) {
  prompt_scores_ = std::move(scores);
}

EventRing::Polled EventRing::take(std::unique_lock<std::mutex>& lock) {
  HR_CHECK(lock.owns_lock());
  Polled polled;
  if (events_.empty()) {
    reader_sleeps_ = true;
    return polled;
  }
  polled.event = std::move(events_.front());
  events_.pop_front();
  if (writer_waits_ && events_.size() <= room_mark()) {
    writer_waits_ = false;
    polled.made_room = true;
  }
  return polled;
}

EventRing::Polled EventRing::poll() {
  std::unique_lock lock(mutex_);
  return take(lock);
}

EventRing::Polled EventRing::wait() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [this] { return !events_.empty(); });
  return take(lock);
}

void EventRing::set_waker(std::function<void()> waker) {
  const std::lock_guard lock(waker_mutex_);
  waker_ = std::move(waker);
}

}  // namespace headrace
