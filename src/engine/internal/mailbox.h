// The only lock between clients and the engine's thread: new requests (bounded), cancels, and the
// wish to go on after a full ring was read. Also the count of accepted requests, and the flag by
// which a long step is given up.
//
// Any thread, except where it says engine. Outlives the engine where a handle does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "admission/admission.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/internal/event_ring.h"
#include "engine/request.h"
#include "sched/policy.h"

namespace headrace {

struct Arrival {
  SequenceId id{};
  RequestSpec spec;
  std::shared_ptr<EventRing> ring;
};

class Mailbox {
 public:
  Mailbox(const AdmissionLimits& limits, int max_running, BatchingKind batching)
      : limits_(limits), batching_(batching), speed_{.max_running = max_running} {}

  // kUnavailable when closed, kExhausted when admission refuses. Of a request that is not known
  // yet, and of one that is.
  Status can_submit() const;
  Result<SequenceId> submit(RequestSpec spec, std::shared_ptr<EventRing> ring, TimePoint now);
  Duration retry_after() const;  // after the last refusal
  void cancel(SequenceId id);
  void poke();  // a stalled sequence may go on
  void set_batching(BatchingKind kind);
  BatchingKind batching() const;

  void close();  // no new requests
  void stop();   // closes, and gives up the step in progress
  bool closed() const;
  bool stopping() const;
  int num_active() const;   // accepted and not ended
  int num_waiting() const;  // of them, those that do not run
  // True when no request is active, false after the timeout.
  bool wait_until_idle(Duration timeout);

  // Engine.
  struct Letters {
    std::vector<Arrival> arrivals;
    std::vector<SequenceId> cancelled;
  };
  Letters take();
  void wait(std::optional<Duration> timeout);  // for a letter, a poke or stop()
  void set_running(int num_running);
  // How fast the engine works and what runs: all of the backlog but what the mailbox counts itself.
  void set_speed(const Backlog& speed);
  void prompt_started(int prompt_tokens);  // waits no longer
  void request_ended(bool was_running);
  // Between these two, cancelling one of these sequences sets the flag, if the step may be given
  // up.
  void begin_step(std::span<const SequenceId> ids, bool may_give_up);
  void end_step();
  const std::atomic<bool>& give_up() const { return give_up_; }

 private:
  Status admit_locked(const AdmissionRequest& request) const;

  const AdmissionLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable letter_;
  std::condition_variable idle_;
  Letters letters_;
  bool poked_ = false;
  BatchingKind batching_;
  bool closed_ = false;
  bool stopping_ = false;
  bool may_give_up_ = false;
  std::vector<std::uint64_t> in_step_;  // ids, sorted
  std::uint64_t next_id_ = 1;
  int num_active_ = 0;
  int num_running_ = 0;
  std::int64_t waiting_tokens_ = 0;
  Backlog speed_;
  mutable Duration retry_after_{0};
  std::atomic<bool> give_up_{false};
};

}  // namespace headrace
