#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "base/check.h"

namespace headrace {
namespace {

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// True while it is worth to look again at once; false when ~50 us have passed. More threads than cores make spinning
// wasteful, so they yield instead.
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

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads), crowded_(num_threads > available_cores()) {
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
  for (;;) {
    const int task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= num_tasks_) {
      return;
    }
    call_(body_, task, worker_idx);
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
  call_ = call;
  body_ = body;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  num_busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) {
    generation_.notify_all();
  }
  take_tasks(0);
  Spinner spinner(crowded_);
  int busy = 0;
  while ((busy = num_busy_.load(std::memory_order_acquire)) != 0) {
    if (!spinner.again()) {
      num_busy_.wait(busy, std::memory_order_acquire);
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
    ++seen;
    if (stopping_.load(std::memory_order_acquire)) {
      return;
    }
    take_tasks(worker_idx);
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      num_busy_.notify_one();
    }
  }
}

}  // namespace headrace
