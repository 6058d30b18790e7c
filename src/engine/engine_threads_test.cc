// The engine's thread and many clients at once: meant for the thread sanitizer.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

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

// One of every four requests is cancelled at once, one left without a word; the others are read to
// their end.
class Client {
 public:
  Client(Engine& engine, int number) : engine_(engine), number_(number) {}

  void run() {
    for (int i = 0; i < 25; ++i) {
      RequestSpec spec = greedy(bytes_of("client " + std::to_string(number_ % 3)), 12);
      spec.ignore_eos = true;
      Result<std::unique_ptr<RequestHandle>> submitted = engine_.submit(std::move(spec));
      if (submitted.ok()) {
        use(*std::move(submitted).value(), i % 4);
      } else {
        EXPECT_EQ(submitted.error().code, ErrorCode::kExhausted);
      }
    }
  }

  int num_whole() const { return num_whole_; }

 private:
  void use(RequestHandle& handle, int kind) {
    if (kind == 1) {
      handle.cancel();
    }
    if (kind == 2) {
      return;  // the handle dies
    }
    const Answer answer = read_all(handle);
    const bool whole = answer.last().finish == FinishReason::kLength && answer.tokens.size() == 12;
    EXPECT_TRUE(whole || (kind == 1 && answer.last().finish == FinishReason::kCancelled));
    num_whole_ += whole ? 1 : 0;
  }

  Engine& engine_;
  int number_;
  int num_whole_ = 0;
};

TEST(EngineThreads, ManyClientsSubmitCancelReadAndLeave) {
  const std::unique_ptr<Engine> engine = make_engine(threaded());
  engine->start();
  std::deque<Client> clients;
  std::deque<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    Client& client = clients.emplace_back(*engine, number);
    threads.emplace_back([&client] { client.run(); });
  }
  for (int i = 0; i < 200; ++i) {
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.kv.free + stats.kv.cached + stats.kv.used, 48);
    EXPECT_LE(engine->step_records().size(), 4096U);
  }
  int num_whole = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    threads[i].join();
    num_whole += clients[i].num_whole();
  }
  EXPECT_TRUE(engine->drain(std::chrono::seconds(60)));
  EXPECT_EQ(engine->stats().kv.used, 0);
  EXPECT_GT(num_whole, 0);
}

TEST(EngineThreads, DestructionEndsWhatRuns) {
  std::unique_ptr<Engine> engine = make_engine(threaded());
  engine->start();
  std::deque<std::unique_ptr<RequestHandle>> handles;
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
  const auto clock = std::make_shared<ManualClock>();
  setup.clock = clock;
  setup.options.event_ring = 1;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  engine->start();
  RequestSpec spec = greedy({1, 2}, 50);
  spec.ignore_eos = true;
  spec.deadline = clock->now() + std::chrono::milliseconds(20);
  const std::unique_ptr<RequestHandle> handle = std::move(engine->submit(spec)).value();
  while (engine->stats().steps == 0) {
    std::this_thread::yield();
  }
  // The ring is full and not read: only the deadline can end the request.
  clock->advance(std::chrono::milliseconds(20));
  while (engine->stats().running + engine->stats().waiting > 0) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(handle->wait().finish);
  EXPECT_EQ(handle->wait().finish, FinishReason::kDeadline);
}

}  // namespace
}  // namespace headrace
