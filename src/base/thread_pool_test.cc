#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace headrace {
namespace {

class ThreadPoolOf : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(1, 2, 3, 5, 16));

TEST_P(ThreadPoolOf, RunsEachTaskExactlyOnceInEveryLoop) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.num_threads(), GetParam());
  constexpr int kMaxTasks = 37;
  std::vector<std::atomic<int>> counts(kMaxTasks);
  for (int loop = 0; loop < 2000; ++loop) {
    const int num_tasks = loop % (kMaxTasks + 1);
    for (auto& count : counts) {
      count.store(0, std::memory_order_relaxed);
    }
    pool.run(num_tasks, [&](int task, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, GetParam());
      counts[static_cast<std::size_t>(task)].fetch_add(1, std::memory_order_relaxed);
    });
    for (int task = 0; task < kMaxTasks; ++task) {
      ASSERT_EQ(counts[static_cast<std::size_t>(task)].load(std::memory_order_relaxed),
                task < num_tasks ? 1 : 0)
          << "loop " << loop;
    }
  }
}

TEST_P(ThreadPoolOf, WhatTasksWroteIsSeenAfterTheLoop) {
  ThreadPool pool(GetParam());
  std::vector<int> values(256);  // plain memory: the thread sanitizer watches it
  for (int loop = 1; loop <= 500; ++loop) {
    pool.run(256,
             [&](int task, int /*worker*/) { values[static_cast<std::size_t>(task)] += task; });
    ASSERT_EQ(values[255], 255 * loop);
    ASSERT_EQ(values[1], loop);
  }
}

TEST_P(ThreadPoolOf, WorkersOwnTheirScratch) {
  ThreadPool pool(GetParam());
  std::vector<int> scratch(static_cast<std::size_t>(GetParam()));
  int total = 0;
  for (int loop = 0; loop < 300; ++loop) {
    pool.run(64, [&](int /*task*/, int worker) { ++scratch[static_cast<std::size_t>(worker)]; });
  }
  for (const int count : scratch) {
    total += count;
  }
  EXPECT_EQ(total, 300 * 64);
}

TEST_P(ThreadPoolOf, WakesUpAfterSleep) {
  ThreadPool pool(GetParam());
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<int> sum{0};
    pool.run(10, [&](int task, int /*worker*/) { sum.fetch_add(task); });
    ASSERT_EQ(sum.load(), 45);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // longer than workers spin: they sleep
  }
}

TEST_P(ThreadPoolOf, IsMadeAndGoneWithoutWork) {
  for (int i = 0; i < 50; ++i) {
    const ThreadPool pool(GetParam());
  }
}

TEST(ThreadPool, ALoopOfNoTasksReturns) {
  ThreadPool pool(2);
  bool called = false;
  pool.run(0, [&](int, int) { called = true; });
  pool.run(-1, [&](int, int) { called = true; });
  EXPECT_FALSE(called);
}

TEST(ThreadPool, MayBeUsedFromOneThreadAfterAnother) {
  ThreadPool pool(3);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> count{0};
    std::thread([&] { pool.run(8, [&](int, int) { count.fetch_add(1); }); }).join();
    ASSERT_EQ(count.load(), 8);
  }
}

TEST(ThreadPoolDeathTest, NeedsAThread) { EXPECT_DEATH(ThreadPool(0), "check failed"); }

TEST(AvailableCores, AreAtLeastOne) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace headrace
