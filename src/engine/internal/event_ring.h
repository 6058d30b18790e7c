// The events of one request on their way from the engine's thread (the one writer) to the client's
// (the one reader). Bounded: the engine asks has_room() before it generates, so only the last event
// may go beyond the capacity.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/request.h"

namespace headrace {

class EventRing {
 public:
  explicit EventRing(int capacity);

  // The engine's side. push() calls the waker where the reader sleeps. False: that was the last
  // place.
  bool push(TokenEvent event);
  // Half of the places are free again.
  bool has_room() const;
  // Before the first push.
  void set_prompt_scores(std::vector<SampledToken> scores);

  // The client's side. poll() tells whether the writer waits for the room that it made.
  struct Polled {
    std::optional<TokenEvent> event;
    bool made_room = false;
  };
  Polled poll();
  Polled wait();
  void set_waker(std::function<void()> waker);  // an empty one: none, and none is being called
  const std::vector<SampledToken>& prompt_scores() const { return prompt_scores_; }
  bool ended() const {
    return ended_.load(std::memory_order_acquire);
  }  // the last event is in the ring

 private:
  Polled take(std::unique_lock<std::mutex>& lock);
  std::size_t room_mark() const { return capacity_ / 2; }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<TokenEvent> events_;  // guarded by mutex_
  bool reader_sleeps_ = false;     // guarded by mutex_
  bool writer_waits_ = false;      // guarded by mutex_
  std::mutex waker_mutex_;
  std::function<void()> waker_;  // guarded by waker_mutex_, which is held during the call
  std::vector<SampledToken> prompt_scores_;
  std::atomic<bool> ended_{false};
};

}  // namespace headrace
