// For one request the tokens are the same alone, in any batch, with any chunking, after preemption
// and after a prefix hit; the step records prove that it happened.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "engine/engine_fixture.h"

namespace headrace {
namespace {

using testing::Answer;
using testing::bytes_of;
using testing::EngineSetup;
using testing::finish;
using testing::make_engine;

RequestSpec request(int i) {
  RequestSpec spec;
  const std::string start = i % 2 == 0 ? "one long shared beginning of a prompt, " : "other, ";
  spec.prompt = bytes_of(start + std::to_string(i));
  spec.sampling.temperature = i % 3 == 0 ? 0.0F : 1.0F;
  spec.sampling.seed = static_cast<std::uint64_t>(1000 + i);
  spec.sampling.repetition_penalty = i % 4 == 0 ? 1.3F : 1.0F;
  spec.sampling.frequency_penalty = i % 5 == 0 ? 0.5F : 0.0F;
  spec.max_tokens = 24;
  spec.ignore_eos = true;
  return spec;
}

struct Outcome {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::string> texts;
  std::vector<StepRecord> records;
};

Outcome run_together(const EngineSetup& setup, int num_requests, int steps_between) {
  const std::unique_ptr<Engine> engine = make_engine(setup);
  std::vector<std::unique_ptr<RequestHandle>> handles;
  std::vector<Answer> answers(static_cast<std::size_t>(num_requests));
  bool worked = true;
  while (worked || static_cast<int>(handles.size()) < num_requests) {
    if (static_cast<int>(handles.size()) < num_requests) {
      handles.push_back(
          std::move(engine->submit(request(static_cast<int>(handles.size())))).value());
    }
    for (int i = 0; i <= steps_between; ++i) {
      worked = engine->step();
    }
    for (std::size_t i = 0; i < handles.size(); ++i) {
      answers[i].read(*handles[i]);
    }
  }
  Outcome outcome;
  for (const Answer& answer : answers) {
    EXPECT_TRUE(answer.ended());
    outcome.tokens.push_back(answer.tokens);
    outcome.texts.push_back(answer.text);
  }
  outcome.records = engine->step_records();
  return outcome;
}

class Sameness : public ::testing::Test {
 protected:
  static constexpr int kNumRequests = 12;

  void SetUp() override {
    for (int i = 0; i < kNumRequests; ++i) {
      EngineSetup setup;
      setup.prefix_cache = false;
      const std::unique_ptr<Engine> engine = make_engine(setup);
      const std::unique_ptr<RequestHandle> handle = std::move(engine->submit(request(i))).value();
      const Answer answer = finish(*engine, *handle);
      ASSERT_EQ(answer.tokens.size(), 24U);
      alone_.tokens.push_back(answer.tokens);
      alone_.texts.push_back(answer.text);
    }
  }

  void expect_same(const Outcome& outcome) const {
    EXPECT_EQ(outcome.tokens, alone_.tokens);
    EXPECT_EQ(outcome.texts, alone_.texts);
  }

  Outcome alone_;
};

TEST_F(Sameness, InABatchOfPrefillAndDecode) {
  EngineSetup setup;
  setup.num_blocks = 512;
  const Outcome outcome = run_together(setup, kNumRequests, 0);
  expect_same(outcome);
  EXPECT_TRUE(std::ranges::any_of(outcome.records, [](const StepRecord& r) {
    return r.num_rows >= 8 && r.num_prefill_rows > 0 && r.num_prefill_rows < r.num_rows;
  }));
}

TEST_F(Sameness, WithAnyChunking) {
  for (const int chunk : {13, 16, 23, 64}) {
    EngineSetup setup;
    setup.num_blocks = 512;
    setup.options.scheduler.max_sequences = 12;
    setup.options.scheduler.max_step_tokens = chunk;
    expect_same(run_together(setup, kNumRequests, 0));
  }
}

TEST_F(Sameness, AfterPreemption) {
  EngineSetup setup;
  setup.num_blocks = 40;
  const Outcome outcome = run_together(setup, kNumRequests, 0);
  expect_same(outcome);
  EXPECT_TRUE(std::ranges::any_of(outcome.records,
                                  [](const StepRecord& r) { return r.num_preempted > 0; }));
}

TEST_F(Sameness, AfterAPrefixHit) {
  EngineSetup setup;
  setup.num_blocks = 512;
  const Outcome outcome = run_together(setup, kNumRequests, 30);
  expect_same(outcome);
  EXPECT_TRUE(std::ranges::any_of(outcome.records,
                                  [](const StepRecord& r) { return r.num_cached_tokens >= 36; }));
}

}  // namespace
}  // namespace headrace
