#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sched.h>
#include <string>

#include "base/check.h"

namespace headrace {
namespace {

constexpr int kTaskBits = 18;
constexpr std::uint64_t kTaskMask = (std::uint64_t{1} << kTaskBits) - 1;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// True while it is worth to look again at once; false when ~50 us have passed. More threads than
// cores make spinning wasteful, so they yield instead.
class Spinner {
 public:
  explicit Spinner(bool crowded) : crowded_(crowded) {}
  bool again() {
    if (crowded_) {
      std::this_thread::yield();
      return ++turns_ < 20;
    }
    pause_cpu();
    if (++turns_ % 64 != 0) {
      return true;
    }
    const auto now = std::chrono::steady_clock::now();
    if (turns_ == 64) {
      start_ = now;
    }
    return now - start_ < std::chrono::microseconds(50);
  }

 private:
  bool crowded_;
  int turns_ = 0;
  std::chrono::steady_clock::time_point start_;
};

int cgroup_quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    return std::max(1, static_cast<int>(std::stod(quota) / period));
  }
  return 1 << 20;
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int affinity = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(affinity, cgroup_quota_cores()));
}

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads), crowded_(num_threads > available_cores()) {
  HR_CHECK(num_threads >= 1);
  workers_.reserve(static_cast<std::size_t>(num_threads - 1));
  for (int i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this, i] { work(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_seq_cst);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  generation_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::take_tasks(int worker_idx) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  const std::uint64_t generation = ticket >> (2 * kTaskBits);
  const auto num_tasks = static_cast<int>(ticket >> kTaskBits & kTaskMask);
  const Erased call = call_.load(std::memory_order_relaxed);
  void* const body = body_.load(std::memory_order_relaxed);
  while (ticket >> (2 * kTaskBits) == generation) {
    const auto task = static_cast<int>(ticket & kTaskMask);
    if (task == num_tasks) {
      return;
    }
    if (!ticket_.compare_exchange_weak(
            ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      continue;
    }
    call(body, task, worker_idx);
    if (num_done_.fetch_add(1, std::memory_order_acq_rel) == num_tasks - 1) {
      num_done_.notify_one();
    }
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::run_erased(int num_tasks, Erased call, void* body) {
  if (num_tasks <= 0) {
    return;
  }
  if (workers_.empty() || num_tasks == 1) {
    for (int task = 0; task < num_tasks; ++task) {
      call(body, task, 0);
    }
    return;
  }
  HR_CHECK(static_cast<std::uint64_t>(num_tasks) <= kTaskMask);
  call_.store(call, std::memory_order_relaxed);
  body_.store(body, std::memory_order_relaxed);
  num_done_.store(0, std::memory_order_relaxed);
  const std::uint64_t generation = generation_.load(std::memory_order_relaxed) + std::uint64_t{1};
  ticket_.store(generation << (2 * kTaskBits) | static_cast<std::uint64_t>(num_tasks) << kTaskBits,
                std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) {
    generation_.notify_all();
  }
  take_tasks(0);
  Spinner spinner(crowded_);
  int done = 0;
  while ((done = num_done_.load(std::memory_order_acquire)) != num_tasks) {
    if (!spinner.again()) {
      num_done_.wait(done, std::memory_order_acquire);
    }
  }
}

void ThreadPool::work(int worker_idx) {
  std::uint32_t seen = 0;
  for (;;) {
    Spinner spinner(crowded_);
    while (generation_.load(std::memory_order_acquire) == seen) {
      if (!spinner.again()) {
        num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
        generation_.wait(seen, std::memory_order_seq_cst);
        num_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
      }
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) {
      return;
    }
    take_tasks(worker_idx);
  }
}

}  // namespace headrace
