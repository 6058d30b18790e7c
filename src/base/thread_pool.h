// Workers that run parallel loops for one caller at a time (the engine thread, or a loader). The
// caller is worker 0 and works too; the others spin for about 50 us after a loop and then sleep, so
// that idle means no CPU. One wake-up a loop. What a loop computes must not depend on which worker
// runs a task. run() may not be called from inside a task.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace headrace {

class ThreadPool {
 public:
  // num_threads counts the caller; 1 means no worker is made.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls fn(task_idx, worker_idx) once for each task in [0, num_tasks), tasks taken in order from
  // one counter, and returns when all are done. worker_idx < num_threads(), for scratch memory.
  // num_tasks < 2^18.
  template <typename Fn>
  void run(int num_tasks, Fn&& fn) {
    using Body = std::remove_reference_t<Fn>;
    run_erased(
        num_tasks,
        [](void* body, int task, int worker) { (*static_cast<Body*>(body))(task, worker); },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  using Erased = void (*)(void* body, int task, int worker);

  void run_erased(int num_tasks, Erased call, void* body);
  void work(int worker_idx);
  void take_tasks(int worker_idx);

  const int num_threads_;
  const bool crowded_;  // more threads than cores
  // The loop under way. A late worker may read these while the next loop is written, but it can
  // only take a task of the loop that the ticket names, so what it read is then right.
  std::atomic<Erased> call_{nullptr};
  std::atomic<void*> body_{nullptr};
  // Generation, number of tasks and next task in one word: a task is taken by one compare-and-swap,
  // and a worker that comes late finds nothing to take. The caller waits for tasks, not for
  // workers.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<int> num_done_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // what idle workers watch and sleep on
  alignas(64) std::atomic<int> num_sleeping_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

// Cores this process may use: affinity mask and cgroup CPU quota, at least 1.
int available_cores();

}  // namespace headrace
