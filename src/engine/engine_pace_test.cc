// What batching, objectives and the queue's limits do to an engine, over a fake model.
#include <algorithm>
#include <chrono>

#include "gtest/gtest.h"

#include "engine/engine_fixture.h"

namespace headrace {
namespace {

using testing::Answer;
using testing::bytes_of;
using testing::EngineSetup;
using testing::finish;
using testing::greedy;
using testing::make_engine;

TEST(EngineBatching, AStaticBatchWaitsForItsDelayAndNoLonger) {
  auto clock = std::make_shared<ManualClock>();
  EngineSetup setup;
  setup.clock = clock;
  setup.options.batching = BatchingKind::kStatic;
  setup.options.scheduler.batch_delay = std::chrono::milliseconds(50);
  const auto engine = make_engine(setup);
  auto handle = engine->submit(greedy(bytes_of("abc"), 2));
  ASSERT_TRUE(handle.ok());
  EXPECT_TRUE(engine->step());  // takes it
  EXPECT_FALSE(engine->step());
  EXPECT_EQ(engine->stats().waiting, 1);
  clock->advance(std::chrono::milliseconds(49));
  EXPECT_FALSE(engine->step());
  clock->advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(engine->step());
  EXPECT_EQ(engine->stats().running, 1);
  EXPECT_EQ(finish(*engine, **handle).tokens.size(), 2U);
}

TEST(EngineBatching, ADrainingEngineDoesNotWaitForAFullerBatch) {
  EngineSetup setup;
  setup.options.batching = BatchingKind::kDynamic;
  setup.options.scheduler.batch_delay = std::chrono::hours(1);
  const auto engine = make_engine(setup);
  auto handle = engine->submit(greedy(bytes_of("abc"), 2));
  ASSERT_TRUE(handle.ok());
  EXPECT_TRUE(engine->drain(std::chrono::hours(2)));
  Answer answer;
  answer.read(**handle);
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
}

TEST(EngineBatching, AStaticBatchComputesPaddingThatNoOneSees) {
  EngineSetup setup;
  setup.options.batching = BatchingKind::kStatic;
  setup.options.scheduler.batch_delay = Duration{0};
  setup.options.scheduler.max_sequences = 2;
  const auto engine = make_engine(setup);
  auto one = engine->submit(greedy(bytes_of("abc"), 1));
  auto two = engine->submit(greedy(bytes_of("abcdefgh"), 4));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(finish(*engine, **two).last().usage.completion_tokens, 4);
  int num_padding = 0;
  for (const StepRecord& record : engine->step_records()) {
    num_padding += record.num_padding_rows;
  }
  EXPECT_EQ(num_padding, 5 + 3);  // of the prompt, and beside the three decode steps of the longer
}

TEST(EngineBatching, ItIsSwitchedByName) {
  const auto engine = make_engine({});
  EXPECT_EQ(engine->batching(), "continuous");
  EXPECT_TRUE(engine->set_batching("dynamic"));
  EXPECT_EQ(engine->batching(), "dynamic");
  const Status refused = engine->set_batching("magic");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().param, "batching");
}

// An engine whose steps take 2 ms and 1 ms for each row.
class EnginePace : public ::testing::Test {
 protected:
  EnginePace() {
    setup_.clock = clock_;
    setup_.num_blocks = 512;
    setup_.max_context = 1024;
    setup_.options.event_ring = 1024;
    setup_.options.scheduler.max_step_tokens = 128;
    setup_.hook = [this](std::span<const SequenceRows> rows) {
      std::size_t num_rows = 0;
      for (const SequenceRows& sequence : rows) {
        num_rows += sequence.tokens.size();
      }
      clock_->advance(std::chrono::milliseconds(2 + num_rows));
    };
    setup_.logits = [](std::span<const TokenId>, std::span<float> logits) {
      std::ranges::fill(logits, 0.0F);
      logits['a'] = 1;
    };
  }

  // Prompts of several lengths, one after the other, so that the cost of a step is known.
  void learn(Engine& engine) {
    for (int i = 1; i <= 8; ++i) {
      auto handle = engine.submit(greedy(prompt(i * 13), 4));
      ASSERT_TRUE(handle.ok());
      finish(engine, **handle);
    }
  }

  static std::vector<TokenId> prompt(int num_tokens) {
    return std::vector<TokenId>(static_cast<std::size_t>(num_tokens), 'b');
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  EngineSetup setup_;
};

TEST_F(EnginePace, ChunksBesideDecodeStayWithinTheObjective) {
  setup_.options.slo_itl = std::chrono::milliseconds(50);
  setup_.prefix_cache = false;
  const auto engine = make_engine(setup_);
  learn(*engine);
  auto decoding = engine->submit(greedy(prompt(4), 200));
  ASSERT_TRUE(decoding.ok());
  engine->step();
  engine->step();
  const std::size_t before = engine->step_records().size();
  auto long_prompt = engine->submit(greedy(prompt(600), 1));
  ASSERT_TRUE(long_prompt.ok());
  for (int i = 0; i < 10; ++i) {
    engine->step();
  }
  const std::vector<StepRecord> records = engine->step_records();
  bool any_prefill = false;
  for (std::size_t i = before; i < records.size(); ++i) {
    EXPECT_LE(records[i].duration, setup_.options.slo_itl);
    any_prefill |= records[i].num_prefill_rows >= 16;
  }
  EXPECT_TRUE(any_prefill);
}

TEST_F(EnginePace, NoMoreSequencesRunThanTheObjectiveAllows) {
  setup_.options.slo_itl = std::chrono::milliseconds(10);  // 8 with headroom: six rows
  const auto engine = make_engine(setup_);
  learn(*engine);
  std::vector<std::unique_ptr<RequestHandle>> handles;
  for (int i = 0; i < 20; ++i) {
    auto handle = engine->submit(greedy(prompt(1), 300));
    ASSERT_TRUE(handle.ok());
    handles.push_back(*std::move(handle));
  }
  for (int i = 0; i < 50; ++i) {
    engine->step();
  }
  EXPECT_GE(engine->stats().running, 5);
  EXPECT_LE(engine->stats().running, 7);
}

TEST_F(EnginePace, ADeadlineThatTheBacklogCannotMeetIsRefusedAtOnce) {
  setup_.options.scheduler.max_sequences = 1;
  const auto engine = make_engine(setup_);
  learn(*engine);
  auto running = engine->submit(greedy(prompt(4), 200));
  ASSERT_TRUE(running.ok());
  engine->step();
  engine->step();
  std::vector<std::unique_ptr<RequestHandle>> waiting;
  for (int i = 0; i < 5; ++i) {
    auto handle = engine->submit(greedy(prompt(100), 4));
    ASSERT_TRUE(handle.ok());
    waiting.push_back(*std::move(handle));
  }
  RequestSpec hasty = greedy(prompt(10), 4);
  hasty.deadline = clock_->now() + std::chrono::milliseconds(20);
  const auto refused = engine->submit(hasty);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_GT(engine->retry_after(), std::chrono::milliseconds(100));
  hasty.deadline = clock_->now() + std::chrono::hours(1);
  EXPECT_TRUE(engine->submit(hasty).ok());
}

TEST_F(EnginePace, AnObjectiveForTheFirstTokenRefusesBeforeAnyWork) {
  setup_.options.scheduler.max_sequences = 1;
  setup_.options.slo_ttft = std::chrono::milliseconds(400);
  const auto engine = make_engine(setup_);
  learn(*engine);
  EXPECT_TRUE(engine->can_submit().ok());
  std::vector<std::unique_ptr<RequestHandle>> accepted;
  while (accepted.size() < 50) {
    auto handle = engine->submit(greedy(prompt(100), 4));
    if (!handle.ok()) {
      EXPECT_EQ(handle.error().code, ErrorCode::kExhausted);
      break;
    }
    accepted.push_back(*std::move(handle));
    engine->step();
  }
  EXPECT_GE(accepted.size(), 2U);
  EXPECT_LT(accepted.size(), 10U);
  // Whoever was accepted gets its first token in time.
  while (engine->step()) {
  }
  for (const auto& handle : accepted) {
    Answer answer;
    answer.read(*handle);
    EXPECT_LE(answer.last().timings.ttft_ms, 400);
  }
}

TEST_F(EnginePace, TheQueueIsBoundedByTokensToo) {
  setup_.options.scheduler.max_sequences = 1;
  setup_.options.max_queue_tokens = 250;
  const auto engine = make_engine(setup_);
  auto one = engine->submit(greedy(prompt(100), 400));
  ASSERT_TRUE(one.ok());
  engine->step();
  auto two = engine->submit(greedy(prompt(100), 4));
  auto three = engine->submit(greedy(prompt(100), 4));
  ASSERT_TRUE(two.ok() && three.ok());
  const auto four = engine->submit(greedy(prompt(100), 4));
  ASSERT_FALSE(four.ok());
  EXPECT_EQ(four.error().code, ErrorCode::kExhausted);
  (*three)->cancel();
  engine->step();
  EXPECT_TRUE(engine->submit(greedy(prompt(100), 4)).ok());
}

TEST_F(EnginePace, WhoWaitsLongEnoughGoesBeforeAHigherPriority) {
  for (const int waited_s : {9, 11}) {
    setup_.options.scheduler.max_sequences = 1;
    const auto engine = make_engine(setup_);
    auto running = engine->submit(greedy(prompt(4), 400));
    engine->step();
    RequestSpec low = greedy(prompt(4), 400);
    low.priority = 1;
    auto patient = engine->submit(low);
    engine->step();
    clock_->advance(std::chrono::seconds(waited_s));
    auto urgent = engine->submit(greedy(prompt(4), 400));
    ASSERT_TRUE(running.ok() && patient.ok() && urgent.ok());
    (*running)->cancel();
    engine->step();
    engine->step();
    EXPECT_EQ((*patient)->poll().has_value(), waited_s > 10);
    EXPECT_EQ((*urgent)->poll().has_value(), waited_s < 10);
  }
}

}  // namespace
}  // namespace headrace
