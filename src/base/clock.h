// Time for everything that decides by time. Real code gets SteadyClock; tests and the simulation
// get ManualClock. Any thread may ask a clock for the time.
#pragma once

#include <atomic>
#include <chrono>

namespace headrace {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline double to_millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

// Stands still until told. Starts one hour after the epoch, so that earlier times exist.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override {
    return TimePoint(Duration(nanos_.load(std::memory_order_relaxed)));
  }
  void advance(Duration by) { nanos_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> nanos_{std::chrono::nanoseconds(std::chrono::hours(1)).count()};
};

}  // namespace headrace
