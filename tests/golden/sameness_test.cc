// For one request the tokens, and the bits of their log-probabilities, are the same alone or in any
// batch, with any chunking of the prefill, any number of threads, after preemption and after a
// prefix hit, on every tier. The step records prove that each of these happened.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "golden/tiny_model.h"
#include "sched/policy.h"
#include "support/byte_tokenizer.h"

namespace headrace {
namespace {

constexpr int kNumRequests = 12;
constexpr int kAnswerTokens = 24;
constexpr int kFirstGrowing = 100;  // requests from here on: short prompts, answers of 100 tokens
constexpr int kSharedPrefix = 40;

struct Setup {
  std::string tier = {};
  int num_threads = 1;
  int num_blocks = 400;
  int max_step_tokens = 128;
  bool prefix_cache = false;
  int max_sequences = 16;
  BatchingKind batching = BatchingKind::kContinuous;
};

// Prompts of 4 to 90 tokens; every third starts with the same 40. Half are greedy, half sampled.
RequestSpec make_request(int i) {
  RequestSpec spec;
  const bool grows = i >= kFirstGrowing;
  const int length = grows ? 5 : i % 3 == 0 ? kSharedPrefix + 5 + i : 4 + (i * 29) % 87;
  for (int t = 0; t < length; ++t) {
    const std::uint64_t text =
        i % 3 == 0 && t < kSharedPrefix ? 999 : static_cast<std::uint64_t>(i);
    spec.prompt.push_back(
        3 + static_cast<TokenId>(uniform(text, static_cast<std::uint64_t>(t), 0) * 90));
  }
  spec.sampling.temperature = i % 2 == 0 ? 0.0F : 0.9F;
  spec.sampling.top_p = 0.95F;
  spec.sampling.repetition_penalty = i % 4 == 1 ? 1.2F : 1.0F;
  spec.sampling.seed = static_cast<std::uint64_t>(i);
  spec.sampling.num_top_logprobs = 0;
  spec.max_tokens = grows ? 100 : kAnswerTokens;
  spec.ignore_eos = true;
  return spec;
}

struct Token {
  TokenId id;
  std::uint32_t logprob_bits;
  friend bool operator==(const Token&, const Token&) = default;
};
using Answer = std::vector<Token>;

std::unique_ptr<Engine> make_engine(const std::string& model, const Setup& setup) {
  auto file = GgufFile::open(golden_path(model + ".gguf"));
  TinyModel tiny = make_tiny(*file,
                             *read_config(*file),
                             {.tier = setup.tier,
                              .num_threads = setup.num_threads,
                              .kv_type = KvType::kF16,
                              .num_blocks = setup.num_blocks,
                              .prefix_cache = setup.prefix_cache});
  EngineOptions options;
  options.scheduler = {.max_sequences = setup.max_sequences,
                       .max_step_tokens = setup.max_step_tokens,
                       .watermark = 0.0,
                       .batch_delay = Duration{0}};
  options.batching = setup.batching;
  return std::make_unique<Engine>(Engine::Parts{.runner = std::move(tiny.runner),
                                                .kv = std::move(tiny.kv),
                                                .tokenizer = testing::make_byte_tokenizer(),
                                                .metrics = nullptr,
                                                .clock = std::make_shared<SteadyClock>()},
                                  options);
}

Answer read_answer(RequestHandle& handle) {
  Answer answer;
  bool finished = false;
  while (const auto event = handle.poll()) {
    if (event->token.token >= 0) {
      answer.push_back({event->token.token, std::bit_cast<std::uint32_t>(event->token.logprob)});
    }
    finished = event->finish.has_value();
  }
  EXPECT_TRUE(finished);
  return answer;
}

std::vector<Answer> answer_together(Engine& engine, const std::vector<int>& requests) {
  std::vector<std::unique_ptr<RequestHandle>> handles;
  for (const int i : requests) {
    auto handle = engine.submit(make_request(i));
    EXPECT_TRUE(handle.ok()) << handle.error().message;
    handles.push_back(*std::move(handle));
  }
  while (engine.step()) {
  }
  std::vector<Answer> answers;
  for (const auto& handle : handles) {
    answers.push_back(read_answer(*handle));
  }
  return answers;
}

std::vector<int> requests_from(int first) {
  std::vector<int> requests(kNumRequests);
  std::iota(requests.begin(), requests.end(), first);
  return requests;
}

// Each request alone in an engine of its own, whole prefill, one thread.
std::vector<Answer> answer_alone(const std::string& model,
                                 const std::string& tier,
                                 const std::vector<int>& requests) {
  std::vector<Answer> answers;
  for (const int i : requests) {
    const auto engine = make_engine(model, {.tier = tier});
    answers.push_back(answer_together(*engine, {i}).front());
  }
  return answers;
}

struct Evidence {
  bool mixed_step = false;  // at least 8 rows, prefill and decode
  int num_preempted = 0;
  int num_cached_tokens = 0;
  int most_rows = 0;
};

Evidence evidence(const Engine& engine) {
  Evidence e;
  for (const StepRecord& r : engine.step_records()) {
    e.mixed_step = e.mixed_step ||
                   (r.num_rows >= 8 && r.num_prefill_rows > 0 && r.num_prefill_rows < r.num_rows);
    e.num_preempted += r.num_preempted;
    e.num_cached_tokens += r.num_cached_tokens;
    e.most_rows = std::max(e.most_rows, r.num_rows);
  }
  return e;
}

class Sameness : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::string model() const { return std::get<0>(GetParam()); }
  std::string tier() const { return std::get<1>(GetParam()); }
};

TEST_P(Sameness, AnswersAreBitwiseTheSameHoweverTheyAreComputed) {
  const std::vector<int> requests = requests_from(0);
  const std::vector<Answer> alone = answer_alone(model(), tier(), requests);
  ASSERT_EQ(alone[0].size(), kAnswerTokens);
  ASSERT_NE(alone[1], alone[3]);

  // Together, prefill in chunks beside decode, on any number of threads.
  for (const int num_threads : {1, 2, 3, 5, 16}) {
    const auto engine =
        make_engine(model(), {.tier = tier(), .num_threads = num_threads, .max_step_tokens = 29});
    EXPECT_EQ(answer_together(*engine, requests), alone) << num_threads << " threads";
    const Evidence e = evidence(*engine);
    EXPECT_TRUE(e.mixed_step);
    EXPECT_LE(e.most_rows, 29);
  }

  // Twice through a prefix cache: the second time nearly everything is found.
  const auto cached =
      make_engine(model(), {.tier = tier(), .max_step_tokens = 64, .prefix_cache = true});
  EXPECT_EQ(answer_together(*cached, requests), alone);
  EXPECT_EQ(answer_together(*cached, requests), alone);
  EXPECT_GE(evidence(*cached).num_cached_tokens, kNumRequests * 16);
}

// Short prompts enter together and their answers grow until the blocks run out.
TEST_P(Sameness, PreemptedSequencesGiveTheSameAnswers) {
  const std::vector<int> requests = requests_from(kFirstGrowing);
  const std::vector<Answer> alone = answer_alone(model(), tier(), requests);
  ASSERT_EQ(alone[0].size(), 100);
  const auto tight =
      make_engine(model(), {.tier = tier(), .num_blocks = 40, .max_step_tokens = 16});
  EXPECT_EQ(answer_together(*tight, requests), alone);
  EXPECT_GE(evidence(*tight).num_preempted, 1);
}

// In batches of eight, padded (static) or not: two batches, whose ends are ragged.
TEST_P(Sameness, EveryPolicyGivesTheSameAnswers) {
  const std::vector<int> requests = requests_from(0);
  const std::vector<Answer> alone = answer_alone(model(), tier(), requests);
  for (const BatchingKind kind : {BatchingKind::kDynamic, BatchingKind::kStatic}) {
    const auto engine = make_engine(model(),
                                    {.tier = tier(),
                                     .num_threads = 3,
                                     .max_step_tokens = 64,
                                     .max_sequences = 8,
                                     .batching = kind});
    EXPECT_EQ(answer_together(*engine, requests), alone) << name_of(kind);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    Sameness,
    ::testing::Combine(::testing::Values("llama", "llama_q", "qwen2_q", "gemma3_q"),
                       ::testing::ValuesIn(tiers())),
    [](const auto& param_info) {
      return std::get<0>(param_info.param) + "_" + std::get<1>(param_info.param);
    });

}  // namespace
}  // namespace headrace
