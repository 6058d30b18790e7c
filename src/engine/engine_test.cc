#include "engine/engine.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "engine/engine_fixture.h"

namespace headrace {
namespace {

using testing::Answer;
using testing::bytes_of;
using ::testing::ElementsAre;
using testing::EngineSetup;
using testing::finish;
using testing::greedy;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kEndToken;
using testing::kFirstWord;
using testing::make_engine;
using testing::says;

std::unique_ptr<RequestHandle> submit(Engine& engine, RequestSpec spec) {
  Result<std::unique_ptr<RequestHandle>> handle = engine.submit(std::move(spec));
  EXPECT_TRUE(handle.ok()) << (handle.ok() ? "" : handle.error().message);
  return std::move(handle).value();
}

Answer ask(const EngineSetup& setup, const RequestSpec& spec) {
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> handle = submit(*engine, spec);
  Answer answer = finish(*engine, *handle);
  EXPECT_EQ(engine->stats().kv.used, 0);
  EXPECT_EQ(engine->stats().running, 0);
  EXPECT_EQ(engine->stats().waiting, 0);
  return answer;
}

void step_until_idle(Engine& engine) {
  while (engine.step()) {
  }
}

EngineSetup saying(const std::string& text, int num_prompt = 2) {
  EngineSetup setup;
  setup.logits = says(num_prompt, bytes_of(text));
  return setup;
}

// How an answer ends

TEST(Engine, StopsAtTheModelsEndToken) {
  const Answer answer = ask(saying("hello"), greedy({1, 2}, 20));
  EXPECT_EQ(answer.text, "hello");
  EXPECT_EQ(answer.tokens, bytes_of("hello"));
  EXPECT_EQ(answer.last().finish, FinishReason::kStop);
  EXPECT_EQ(answer.last().end_token, kEndToken);
  EXPECT_EQ(answer.last().token.token, -1);
  EXPECT_EQ(answer.last().stop_reason, "");
  EXPECT_EQ(answer.last().usage.prompt_tokens, 2);
  EXPECT_EQ(answer.last().usage.completion_tokens, 6);
  EXPECT_EQ(answer.events.size(), 6U);
}

TEST(Engine, StopsAtTheRequestsOwnToken) {
  RequestSpec spec = greedy({1, 2}, 20);
  spec.stop_token_ids = {'l'};
  const Answer answer = ask(saying("hello"), spec);
  EXPECT_EQ(answer.text, "he");
  EXPECT_EQ(answer.last().finish, FinishReason::kStop);
  EXPECT_EQ(answer.last().end_token, 'l');
  EXPECT_EQ(answer.last().stop_reason, "108");
}

TEST(Engine, EndsAtMaxTokens) {
  const Answer answer = ask(saying("hello"), greedy({1, 2}, 3));
  EXPECT_EQ(answer.text, "hel");
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
  EXPECT_EQ(answer.last().token.token, 'l');
  EXPECT_EQ(answer.last().usage.completion_tokens, 3);
}

TEST(Engine, EndsAtTheContext) {
  EngineSetup setup = saying("hello");
  setup.max_context = 6;
  const Answer answer = ask(setup, greedy({1, 2}, 100));
  EXPECT_EQ(answer.text, "hell");
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
}

TEST(Engine, APromptAsLongAsTheContextEndsAtOnce) {
  EngineSetup setup = saying("hello");
  setup.max_context = 2;
  const Answer answer = ask(setup, greedy({1, 2}, 100));
  EXPECT_EQ(answer.text, "");
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
}

TEST(Engine, TheContextIsWhatTheKvMemoryHolds) {
  EngineSetup setup = saying("hello world");
  setup.num_blocks = 2;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  EXPECT_EQ(engine->max_context(), 8);
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 100));
  const Answer answer = finish(*engine, *handle);
  EXPECT_EQ(answer.text, "hello ");
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
}

TEST(Engine, MaxTokensZeroEndsWithoutAStep) {
  const std::unique_ptr<Engine> engine = make_engine(saying("hello"));
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 0));
  const Answer answer = finish(*engine, *handle);
  ASSERT_EQ(answer.events.size(), 1U);
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
  EXPECT_EQ(answer.last().usage.completion_tokens, 0);
  EXPECT_THAT(engine->step_records(), IsEmpty());
}

TEST(Engine, IgnoresTheModelsEndTokenWhenAsked) {
  RequestSpec spec = greedy({1, 2}, 7);
  spec.ignore_eos = true;
  const Answer answer = ask(saying("hello"), spec);
  EXPECT_EQ(answer.tokens.size(), 7U);
  EXPECT_EQ(answer.text, "hello");  // end tokens have no text
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
}

TEST(Engine, NoEndTokenBeforeMinTokens) {
  RequestSpec spec = greedy({1, 2}, 20);
  spec.min_tokens = 7;
  const Answer answer = ask(saying("hello"), spec);
  ASSERT_EQ(answer.tokens.size(), 7U);
  EXPECT_EQ(answer.text.substr(0, 5), "hello");
  EXPECT_EQ(answer.last().end_token, kEndToken);
  EXPECT_EQ(answer.last().usage.completion_tokens, 8);
}

TEST(Engine, NoStopStringInTextBeforeMinTokens) {
  RequestSpec spec = greedy({1, 2}, 20);
  spec.min_tokens = 4;
  spec.stop = {"l"};
  EXPECT_EQ(ask(saying("hello"), spec).text, "hel");
  spec.min_tokens = 5;
  EXPECT_EQ(ask(saying("hello"), spec).text, "hello");
  spec.min_tokens = 3;
  EXPECT_EQ(ask(saying("hello"), spec).text, "he");
}

TEST(Engine, StopStringsAcrossTokenBorders) {
  RequestSpec spec = greedy({1, 2}, 40);
  spec.stop = {"STOP", "\n\n"};
  const Answer answer = ask(saying("a ST OP SSTOP x"), spec);
  EXPECT_EQ(answer.text, "a ST OP S");
  EXPECT_EQ(answer.last().finish, FinishReason::kStop);
  EXPECT_EQ(answer.last().stop_reason, "STOP");
  EXPECT_EQ(answer.last().token.token, 'P');
  EXPECT_EQ(answer.last().piece, "P");
  EXPECT_EQ(answer.last().usage.completion_tokens, 13);
}

TEST(Engine, AStopInsideOneTokenCutsItsText) {
  EngineSetup setup;
  setup.words = {"one. two", " three"};
  setup.logits = says(2, {kFirstWord, kFirstWord + 1});
  RequestSpec spec = greedy({1, 2}, 40);
  spec.stop = {". t"};
  EXPECT_EQ(ask(setup, spec).text, "one");
  spec.stop = {"o three"};
  EXPECT_EQ(ask(setup, spec).text, "one. tw");
  spec.stop = {"threes"};
  EXPECT_EQ(ask(setup, spec).text, "one. two three");
}

TEST(Engine, TextHeldForAStopComesWithTheEnd) {
  RequestSpec spec = greedy({1, 2}, 4);
  spec.stop = {"loX"};
  const Answer answer = ask(saying("helo"), spec);
  EXPECT_EQ(answer.text, "helo");
  EXPECT_EQ(answer.last().text, "lo");
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
}

TEST(Engine, HalfACharacterIsHeldBack) {
  const Answer answer = ask(saying("a\xE2\x82\xAC\xE2\x82"), greedy({1, 2}, 20));
  EXPECT_EQ(answer.events.at(1).text, "");
  EXPECT_EQ(answer.events.at(3).text, "\xE2\x82\xAC");
  EXPECT_EQ(answer.events.at(3).piece, "\xAC");
  EXPECT_EQ(answer.text, "a\xE2\x82\xAC\xEF\xBF\xBD");
}

// Clients

TEST(Engine, AFullRingParksItsSequenceAndReadingResumesIt) {
  EngineSetup setup = saying("0123456789");
  setup.options.event_ring = 4;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> slow = submit(*engine, greedy({1, 2}, 20));
  const std::unique_ptr<RequestHandle> fast = submit(*engine, greedy({3, 4}, 20));
  Answer quick = finish(*engine, *fast);
  EXPECT_EQ(quick.text, "0123456789");
  EXPECT_FALSE(engine->step());
  EXPECT_EQ(engine->stats().running, 1);
  EXPECT_EQ(engine->stats().kv.used, 2);  // 2 + 4 tokens
  Answer answer;
  answer.read(*slow);
  EXPECT_EQ(answer.text, "0123");
  for (int i = 0; i < 3; ++i) {
    step_until_idle(*engine);
    answer.read(*slow);
  }
  EXPECT_EQ(answer.text, "0123456789");
  EXPECT_TRUE(answer.ended());
}

TEST(Engine, AParkedSequenceMayBePreemptedAndComesBack) {
  EngineSetup setup = saying("0123456789");
  setup.options.event_ring = 2;
  setup.num_blocks = 4;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> slow = submit(*engine, greedy({1, 2}, 10));
  step_until_idle(*engine);
  const std::unique_ptr<RequestHandle> fast = submit(*engine, greedy({3, 4}, 10));
  EXPECT_EQ(finish(*engine, *fast).text, "0123456789");
  Answer answer;
  for (int i = 0; i < 8; ++i) {
    answer.read(*slow);
    step_until_idle(*engine);
  }
  answer.read(*slow);
  EXPECT_EQ(answer.text, "0123456789");
}

TEST(Engine, CancelFreesBlocksInTheNextStepAndEndsOnce) {
  const std::unique_ptr<Engine> engine = make_engine(saying("0123456789"));
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 20));
  engine->step();
  EXPECT_EQ(engine->stats().kv.used, 1);
  handle->cancel();
  handle->cancel();
  EXPECT_TRUE(engine->step());
  EXPECT_EQ(engine->stats().kv.used, 0);
  Answer answer;
  answer.read(*handle);
  EXPECT_EQ(answer.last().finish, FinishReason::kCancelled);
  EXPECT_EQ(answer.text, "0");
  handle->cancel();
  engine->step();
  EXPECT_FALSE(handle->poll());
}

TEST(Engine, AHandleThatDiesCancels) {
  const std::unique_ptr<Engine> engine = make_engine(saying("0123456789"));
  submit(*engine, greedy({1, 2}, 20)).reset();
  EXPECT_TRUE(engine->step());
  EXPECT_EQ(engine->stats().waiting, 0);
  std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 20));
  engine->step();
  handle.reset();
  engine->step();
  EXPECT_EQ(engine->stats().kv.used, 0);
}

TEST(Engine, AHandleMayOutliveItsEngine) {
  std::unique_ptr<Engine> engine = make_engine(saying("0123456789"));
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 20));
  engine->step();
  engine.reset();
  Answer answer;
  answer.read(*handle);
  EXPECT_EQ(answer.last().finish, FinishReason::kCancelled);
}

// The third step's run cancels "victim", which runs beside "other".
class CancelInAStep : public ::testing::Test {
 protected:
  void run(Duration give_up_over) {
    EngineSetup setup;
    setup.options.give_up_over = give_up_over;
    RequestHandle* victim = nullptr;
    int num_runs = 0;
    setup.hook = [&](std::span<const SequenceRows>) {
      if (++num_runs == 3) {
        victim->cancel();
      }
    };
    const std::unique_ptr<Engine> engine = make_engine(setup);
    const std::unique_ptr<RequestHandle> other = submit(*engine, greedy(bytes_of("other"), 8));
    const std::unique_ptr<RequestHandle> cancelled = submit(*engine, greedy(bytes_of("victim"), 8));
    victim = cancelled.get();
    other_ = finish(*engine, *other);
    cancelled_.read(*cancelled);
    records_ = engine->step_records();
  }

  Answer other_;
  Answer cancelled_;
  std::vector<StepRecord> records_;
};

TEST_F(CancelInAStep, GivesUpALongOneAndTheOthersAreTheSame) {
  run(Duration{0});
  EXPECT_EQ(other_.tokens, ask(EngineSetup{}, greedy(bytes_of("other"), 8)).tokens);
  EXPECT_EQ(cancelled_.last().finish, FinishReason::kCancelled);
  EXPECT_EQ(cancelled_.tokens.size(), 2U);
  EXPECT_TRUE(records_.at(2).given_up);
  EXPECT_EQ(std::ranges::count(records_, true, &StepRecord::given_up), 1);
}

TEST_F(CancelInAStep, WaitsForAShortOne) {
  run(Duration::max());
  EXPECT_EQ(other_.tokens, ask(EngineSetup{}, greedy(bytes_of("other"), 8)).tokens);
  EXPECT_EQ(cancelled_.last().finish, FinishReason::kCancelled);
  EXPECT_EQ(cancelled_.tokens.size(), 3U);
  EXPECT_EQ(std::ranges::count(records_, true, &StepRecord::given_up), 0);
}

TEST(Engine, NoTwoStepsInARowAreGivenUp) {
  EngineSetup setup;
  setup.options.give_up_over = Duration{0};
  std::vector<std::unique_ptr<RequestHandle>> victims;
  setup.hook = [&](std::span<const SequenceRows>) {
    if (!victims.empty()) {
      victims.back()->cancel();
      victims.pop_back();
    }
  };
  const std::unique_ptr<Engine> engine = make_engine(setup);
  for (int i = 0; i < 6; ++i) {
    victims.push_back(submit(*engine, greedy({10 + i, 2}, 8)));
  }
  const std::unique_ptr<RequestHandle> other = submit(*engine, greedy(bytes_of("other"), 8));
  EXPECT_EQ(finish(*engine, *other).tokens,
            ask(EngineSetup{}, greedy(bytes_of("other"), 8)).tokens);
  const auto records = engine->step_records();
  EXPECT_EQ(std::ranges::count(records, true, &StepRecord::given_up), 3);
  for (std::size_t i = 1; i < records.size(); ++i) {
    EXPECT_FALSE(records[i].given_up && records[i - 1].given_up);
  }
}

TEST(Engine, AFailingStepEndsItsRequestsWithAnError) {
  EngineSetup setup;
  setup.hook = [](std::span<const SequenceRows>) { throw std::runtime_error("out of luck"); };
  const Answer answer = ask(setup, greedy({1, 2}, 8));
  EXPECT_EQ(answer.last().finish, FinishReason::kError);
  EXPECT_EQ(answer.last().error->code, ErrorCode::kInternal);
  EXPECT_THAT(answer.last().error->message, HasSubstr("out of luck"));
}

TEST(Engine, LogitsThatAreNoNumbersEndTheirRequestAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EngineSetup setup;
  setup.logits = [](std::span<const TokenId> prefix, std::span<float> logits) {
    says(2, bytes_of("hello"))(prefix, logits);
    logits[5] = -kInfinity;  // one token less, no fault
    if (prefix[0] == 'n' && prefix.size() == 4) {
      logits[9] = std::numeric_limits<float>::quiet_NaN();
    }
    if (prefix[0] == 'i') {
      logits[9] = kInfinity;
    }
    if (prefix[0] == 'a') {
      std::ranges::fill(logits, std::numeric_limits<float>::quiet_NaN());
    }
    if (prefix[0] == 'm') {
      std::ranges::fill(logits, -kInfinity);
    }
  };
  const std::unique_ptr<Engine> engine = make_engine(setup);
  std::vector<std::unique_ptr<RequestHandle>> handles;
  for (const TokenId first : {'o', 'n', 'i', 'a', 'm'}) {
    handles.push_back(submit(*engine, greedy({first, 2}, 20)));
  }
  RequestSpec scored = greedy({'a', 2}, 0);
  scored.prompt_logprobs = true;
  handles.push_back(submit(*engine, scored));
  step_until_idle(*engine);
  std::vector<std::string> texts;
  for (const std::unique_ptr<RequestHandle>& handle : handles) {
    Answer answer;
    answer.read(*handle);
    texts.push_back(answer.text);
    const bool failed = texts.size() > 1;
    EXPECT_EQ(answer.last().finish, failed ? FinishReason::kError : FinishReason::kStop);
    EXPECT_EQ(answer.last().error.has_value(), failed);
    if (failed) {
      EXPECT_EQ(answer.last().error->code, ErrorCode::kInternal);
      EXPECT_THAT(answer.last().error->message, HasSubstr("logits are not numbers"));
    }
  }
  EXPECT_THAT(texts, ElementsAre("hello", "he", "", "", "", ""));
  EXPECT_EQ(engine->stats().kv.used, 0);
}

TEST(Engine, DeadlinesEndQueuedAndRunningRequests) {
  EngineSetup setup = saying("longer than twenty tokens");
  setup.options.scheduler.max_sequences = 1;
  const auto clock = std::make_shared<ManualClock>();
  setup.clock = clock;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  RequestSpec spec = greedy({1, 2}, 100);
  spec.deadline = clock->now() + std::chrono::milliseconds(30);
  const std::unique_ptr<RequestHandle> running = submit(*engine, spec);
  const std::unique_ptr<RequestHandle> queued = submit(*engine, spec);
  engine->step();
  clock->advance(std::chrono::milliseconds(29));
  engine->step();
  EXPECT_EQ(engine->stats().running, 1);
  clock->advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(engine->step());
  EXPECT_EQ(engine->stats().running, 0);
  Answer first;
  first.read(*running);
  EXPECT_EQ(first.last().finish, FinishReason::kDeadline);
  EXPECT_EQ(first.last().error->code, ErrorCode::kDeadline);
  EXPECT_EQ(first.tokens.size(), 2U);
  EXPECT_EQ(first.last().timings.total_ms, 30);
  Answer second;
  second.read(*queued);
  EXPECT_EQ(second.last().finish, FinishReason::kDeadline);
  EXPECT_THAT(second.last().error->message, HasSubstr("waited 30 ms in the queue"));
}

TEST(Engine, TheQueueTimeoutEndsOnlyWhatNeverRan) {
  EngineSetup setup = saying("longer than twenty tokens");
  setup.options.scheduler.max_sequences = 1;
  setup.options.queue_timeout = std::chrono::milliseconds(10);
  const auto clock = std::make_shared<ManualClock>();
  setup.clock = clock;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> running = submit(*engine, greedy({1, 2}, 20));
  engine->step();
  const std::unique_ptr<RequestHandle> queued = submit(*engine, greedy({1, 2}, 20));
  engine->step();
  clock->advance(std::chrono::milliseconds(10));
  engine->step();
  Answer answer;
  answer.read(*queued);
  EXPECT_EQ(answer.last().finish, FinishReason::kDeadline);
  EXPECT_EQ(finish(*engine, *running).last().finish, FinishReason::kLength);
}

TEST(Engine, TimingsAreTheClocks) {
  EngineSetup setup = saying("abc");
  const auto clock = std::make_shared<ManualClock>();
  setup.clock = clock;
  setup.hook = [&](std::span<const SequenceRows>) { clock->advance(std::chrono::milliseconds(5)); };
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 3));
  clock->advance(std::chrono::milliseconds(7));
  const Answer answer = finish(*engine, *handle);
  EXPECT_EQ(answer.last().timings.queue_ms, 7);
  EXPECT_EQ(answer.last().timings.ttft_ms, 12);
  EXPECT_EQ(answer.last().timings.total_ms, 22);
  EXPECT_EQ(engine->step_records().at(0).duration, std::chrono::milliseconds(5));
}

// Refusals

TEST(Engine, AFullQueueRefuses) {
  EngineSetup setup = saying("longer than twenty tokens");
  setup.options.scheduler.max_sequences = 1;
  setup.options.max_queue = 1;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> first = submit(*engine, greedy({1, 2}, 20));
  engine->step();
  EXPECT_TRUE(engine->can_submit().ok());
  const std::unique_ptr<RequestHandle> second = submit(*engine, greedy({1, 2}, 20));
  EXPECT_FALSE(engine->can_submit().ok());
  Result<std::unique_ptr<RequestHandle>> third = engine->submit(greedy({1, 2}, 20));
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(finish(*engine, *second).last().finish, FinishReason::kLength);
  EXPECT_TRUE(engine->can_submit().ok());
}

TEST(Engine, BadPromptsAreRefused) {
  EngineSetup setup;
  setup.max_context = 8;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  for (const auto& [prompt, message] : std::vector<std::pair<std::vector<TokenId>, std::string>>{
           {{}, "empty"},
           {std::vector<TokenId>(9, 1), "9 tokens, the context 8"},
           {{1, -1}, "token 1 of the prompt is -1"},
           {{kFirstWord}, "token 0 of the prompt is 257"},
           {{std::numeric_limits<TokenId>::max()}, "2147483647"}}) {
    Result<std::unique_ptr<RequestHandle>> handle = engine->submit(greedy(prompt, 4));
    ASSERT_FALSE(handle.ok());
    EXPECT_EQ(handle.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(handle.error().param, "prompt");
    EXPECT_THAT(handle.error().message, HasSubstr(message));
  }
  setup.num_blocks = 1;
  Result<std::unique_ptr<RequestHandle>> handle =
      make_engine(setup)->submit(greedy(std::vector<TokenId>(5, 1), 4));
  ASSERT_FALSE(handle.ok());
  EXPECT_THAT(handle.error().message, HasSubstr("KV memory holds 4"));
}

TEST(Engine, DrainFinishesWhatRunsAndRefusesTheRest) {
  const std::unique_ptr<Engine> engine = make_engine(saying("hello"));
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 20));
  EXPECT_TRUE(engine->drain(std::chrono::seconds(1)));
  EXPECT_TRUE(engine->stats().draining);
  Answer answer;
  answer.read(*handle);
  EXPECT_EQ(answer.text, "hello");
  Result<std::unique_ptr<RequestHandle>> refused = engine->submit(greedy({1, 2}, 20));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST(Engine, DrainCancelsWhatDoesNotEnd) {
  EngineSetup setup = saying("hello");
  setup.options.event_ring = 2;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  const std::unique_ptr<RequestHandle> handle = submit(*engine, greedy({1, 2}, 20));
  EXPECT_FALSE(engine->drain(std::chrono::seconds(1)));
  Answer answer;
  answer.read(*handle);
  EXPECT_EQ(answer.last().finish, FinishReason::kCancelled);
}

// Log-probabilities

TEST(Engine, PromptScoresAreThoseOfEachPrefix) {
  EngineSetup setup;
  setup.options.scheduler.max_logit_rows = 3;
  const std::vector<TokenId> prompt = bytes_of("a prompt");
  RequestSpec spec = greedy(prompt, 2);
  spec.prompt_logprobs = true;
  spec.sampling.num_top_logprobs = 2;
  const std::unique_ptr<Engine> engine = make_engine(setup);
  for (int round = 0; round < 2; ++round) {  // a cached prefix is not used
    const std::unique_ptr<RequestHandle> handle = submit(*engine, spec);
    const Answer answer = finish(*engine, *handle);
    EXPECT_EQ(answer.tokens.size(), 2U);
    const std::vector<SampledToken>& scores = handle->prompt_scores();
    ASSERT_EQ(scores.size(), prompt.size() - 1);
    std::vector<float> logits(static_cast<std::size_t>(kFirstWord));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      testing::hashed_logits(std::span(prompt).first(i + 1), logits);
      const SampledToken expected = score(logits, prompt[i + 1], 2);
      EXPECT_EQ(scores[i].token, prompt[i + 1]);
      EXPECT_EQ(scores[i].logprob, expected.logprob);
      EXPECT_EQ(scores[i].top.at(1).token, expected.top.at(1).token);
    }
  }
  for (const StepRecord& record : engine->step_records()) {
    EXPECT_EQ(record.num_cached_tokens, 0);
  }
}

TEST(Engine, ScoringAloneGeneratesNothing) {
  RequestSpec spec = greedy(bytes_of("a prompt"), 0);
  spec.prompt_logprobs = true;
  const std::unique_ptr<Engine> engine = make_engine({});
  const std::unique_ptr<RequestHandle> handle = submit(*engine, spec);
  const Answer answer = finish(*engine, *handle);
  EXPECT_EQ(answer.events.size(), 1U);
  EXPECT_EQ(answer.last().finish, FinishReason::kLength);
  EXPECT_EQ(handle->prompt_scores().size(), 7U);
  EXPECT_EQ(answer.last().usage.completion_tokens, 0);
}

}  // namespace
}  // namespace headrace
