// The engine's thread and many clients at once: meant for the thread sanitizer.
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "engine/engine_fixture.h"

namespace headrace {
namespace {

using testing::Answer;
using testing::bytes_of;
using testing::EngineSetup;
using testing::greedy;
using testing::make_engine;

EngineSetup threaded() {
  EngineSetup setup;
  setup.clock = std::make_shared<SteadyClock>();
  setup.metrics = std::make_shared<Metrics>("fake");
  setup.num_blocks = 48;
  setup.options.max_queue = 8;
  setup.options.event_ring = 4;
  setup.options.give_up_over = Duration{0};
  return setup;
}

// Sleeps until the waker comes, as a server's connection does.
class Sleeper {
 public:
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      awake_ = true;
    }
    changed_.notify_one();
  }
  void sleep() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return awake_; });
    awake_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool awake_ = false;
};

Answer read_all(RequestHandle& handle) {
  Sleeper sleeper;
  handle.set_waker([&] { sleeper.wake(); });
  Answer answer;
  answer.read(handle);
  while (!answer.ended()) {
    sleeper.sleep();
    answer.read(handle);
  }
  handle.set_waker({});
  return answer;
}

TEST(EngineThreads, AnIdleEngineWakesForARequest) {
  const std::unique_ptr<Engine> engine = make_engine(threaded());
  engine->start();
  for (int i = 0; i < 3; ++i) {
    const std::unique_ptr<RequestHandle> handle =
        std::move(engine->submit(greedy({1, 2}, 6))).value();
    int num_events = 0;
    while (!handle->wait().finish) {
      ++num_events;
    }
    EXPECT_LE(num_events, 6);
  }
}

TEST(EngineThreads, ManyClientsSubmitCancelReadAndLeave) {
  const std::unique_ptr<Engine> engine = make_engine(threaded());
  engine->start();
  constexpr int kNumClients = 8;
  constexpr int kNumRequests = 25;
  std::atomic<int> num_ended{0};
  std::atomic<int> num_refused{0};
  const auto client = [&](int number) {
    for (int i = 0; i < kNumRequests; ++i) {
      RequestSpec spec = greedy(bytes_of("client " + std::to_string(number % 3)), 12);
      spec.ignore_eos = true;
      Result<std::unique_ptr<RequestHandle>> submitted = engine->submit(spec);
      if (!submitted.ok()) {
        EXPECT_EQ(submitted.error().code, ErrorCode::kExhausted);
        ++num_refused;
        continue;
      }
      const std::unique_ptr<RequestHandle> handle = std::move(submitted).value();
      if (i % 4 == 1) {
        handle->cancel();
      }
      if (i % 4 == 2) {
        continue;  // the handle dies
      }
      const Answer answer = read_all(*handle);
      const bool whole =
          answer.last().finish == FinishReason::kLength && answer.tokens.size() == 12;
      EXPECT_TRUE(whole || answer.last().finish == FinishReason::kCancelled);
      EXPECT_TRUE(whole || i % 4 == 1);
      ++num_ended;
    }
  };
  std::vector<std::thread> clients;
  for (int number = 0; number < kNumClients; ++number) {
    clients.emplace_back(client, number);
  }
  std::thread watcher([&] {
    for (int i = 0; i < 200; ++i) {
      const EngineStats stats = engine->stats();
      EXPECT_EQ(stats.kv.free + stats.kv.cached + stats.kv.used, 48);
      EXPECT_LE(engine->step_records().size(), 4096U);
    }
  });
  for (std::thread& thread : clients) {
    thread.join();
  }
  watcher.join();
  EXPECT_TRUE(engine->drain(std::chrono::seconds(60)));
  EXPECT_EQ(engine->stats().kv.used, 0);
  EXPECT_GT(num_ended.load(), 0);
}

TEST(EngineThreads, DestructionEndsWhatRuns) {
  std::unique_ptr<Engine> engine = make_engine(threaded());
  engine->start();
  std::vector<std::unique_ptr<RequestHandle>> handles;
  for (int i = 0; i < 6; ++i) {
    handles.push_back(std::move(engine->submit(greedy({1, i}, 100))).value());
  }
  engine.reset();
  for (const std::unique_ptr<RequestHandle>& handle : handles) {
    TokenEvent event = handle->wait();
    while (!event.finish) {
      event = handle->wait();
    }
    EXPECT_FALSE(handle->poll());
  }
}

TEST(EngineThreads, ADeadlineWakesAnEngineThatSleeps) {
  EngineSetup setup = threaded();
  setup.options.event_ring = 1;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  engine->start();
  RequestSpec spec = greedy({1, 2}, 50);
  spec.ignore_eos = true;
  spec.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  const std::unique_ptr<RequestHandle> handle = std::move(engine->submit(spec)).value();
  // The ring holds one event and is not read: only the deadline can end the request.
  while (engine->stats().running + engine->stats().waiting > 0) {
    std::this_thread::yield();
  }
  handle->wait();
  EXPECT_EQ(handle->wait().finish, FinishReason::kDeadline);
}

}  // namespace
}  // namespace headrace
