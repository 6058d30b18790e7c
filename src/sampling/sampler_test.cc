#include "sampling/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <vector>

namespace headrace {
namespace {

const float kNaN = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

SamplingParams greedy() {
  SamplingParams p;
  p.temperature = 0;
  return p;
}

TokenId pick(const std::vector<float>& logits,
             const SamplingParams& params,
             std::uint64_t position = 0,
             const std::vector<TokenId>& output = {},
             const std::vector<TokenId>& prompt = {},
             const std::vector<TokenId>& forbidden = {}) {
  Sampler sampler;
  return sampler
      .sample({.logits = logits,
               .prompt = prompt,
               .output = output,
               .forbidden = forbidden,
               .position = position},
              params)
      .token;
}

// How often each token is drawn at 20,000 positions.
std::map<TokenId, double> frequencies(const std::vector<float>& logits,
                                      const SamplingParams& params) {
  std::map<TokenId, double> counts;
  Sampler sampler;
  for (std::uint64_t position = 0; position < 20000; ++position) {
    counts[sampler
               .sample({.logits = logits,
                        .prompt = {},
                        .output = {},
                        .forbidden = {},
                        .position = position},
                       params)
               .token] += 1.0 / 20000;
  }
  return counts;
}

const std::vector<float> kTenths = {std::log(0.4F), std::log(0.3F), std::log(0.2F), std::log(0.1F)};

TEST(Sampler, GreedyTakesTheBestAndOfEqualsTheLowestId) {
  EXPECT_EQ(pick({1, 3, 3, 2}, greedy()), 1);
  EXPECT_EQ(pick({-5, -5}, greedy()), 0);
}

TEST(Sampler, NaNCountsAsImpossible) {
  EXPECT_EQ(pick({kNaN, 1, kNaN}, greedy()), 1);
  SamplingParams p;
  EXPECT_EQ(pick({kNaN, 1, -kInf}, p), 1);
  EXPECT_EQ(pick({kNaN, kNaN}, p), 0);  // nothing is possible: the first, not a crash
}

TEST(Sampler, DrawsWithTheSoftmaxProbabilities) {
  const auto f = frequencies(kTenths, {});
  EXPECT_NEAR(f.at(0), 0.4, 0.015);
  EXPECT_NEAR(f.at(1), 0.3, 0.015);
  EXPECT_NEAR(f.at(2), 0.2, 0.015);
  EXPECT_NEAR(f.at(3), 0.1, 0.015);
}

TEST(Sampler, TemperatureTwoTakesTheSquareRoot) {
  SamplingParams p;
  p.temperature = 2;
  const double sum = std::sqrt(0.4) + std::sqrt(0.3) + std::sqrt(0.2) + std::sqrt(0.1);
  EXPECT_NEAR(frequencies(kTenths, p).at(0), std::sqrt(0.4) / sum, 0.015);
}

TEST(Sampler, TopKKeepsTheBest) {
  SamplingParams p;
  p.top_k = 2;
  const auto f = frequencies(kTenths, p);
  EXPECT_EQ(f.size(), 2);
  EXPECT_NEAR(f.at(0), 4.0 / 7, 0.015);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  SamplingParams p;
  p.top_p = 0.6F;  // 0.4 is not enough, 0.7 is
  const auto f = frequencies(kTenths, p);
  EXPECT_EQ(f.size(), 2);
  EXPECT_NEAR(f.at(1), 3.0 / 7, 0.015);
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  SamplingParams p;
  p.min_p = 0.4F;  // 0.16: drops 0.1
  const auto f = frequencies(kTenths, p);
  EXPECT_EQ(f.size(), 3);
  EXPECT_NEAR(f.at(2), 2.0 / 9, 0.015);
}

TEST(Sampler, TypicalKeepsWhatIsNearestToTheEntropy) {
  // Entropy 1.2799; surprises 0.916, 1.204, 1.609, 2.303: order of nearness is 1, 2, 0, 3.
  SamplingParams p;
  p.typical_p = 0.45F;  // 0.3 is not enough, 0.3 + 0.2 is
  const auto f = frequencies(kTenths, p);
  EXPECT_EQ(f.size(), 2);
  EXPECT_NEAR(f.at(1), 0.6, 0.015);
  EXPECT_NEAR(f.at(2), 0.4, 0.015);
}

TEST(Sampler, DrawsFromAFlatVocabularyReachTheLastToken) {
  const std::vector<float> flat(1000, 1.0F);
  SamplingParams p;
  const auto f = frequencies(flat, p);
  EXPECT_EQ(f.size(), 1000);
  EXPECT_NEAR(f.at(999), 0.001, 0.001);
  p.top_p = 0.5F;  // equal logits stay in the order of their ids
  EXPECT_EQ(frequencies(flat, p).rbegin()->first, 499);
  p.top_p = 1;
  p.min_p = 1;
  EXPECT_EQ(frequencies(flat, p).size(), 1000);
}

TEST(Sampler, NoiseIsAFunctionOfSeedAndPosition) {
  SamplingParams p;
  p.seed = 7;
  std::vector<TokenId> first;
  std::vector<TokenId> again;
  std::vector<TokenId> other;
  for (std::uint64_t position = 0; position < 50; ++position) {
    p.seed = 7;
    first.push_back(pick(kTenths, p, position));
    again.push_back(pick(kTenths, p, position));
    p.seed = 8;
    other.push_back(pick(kTenths, p, position));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Sampler, LogitBiasMovesAndForbids) {
  SamplingParams p = greedy();
  p.logit_bias = {{0, -100}, {2, 5}};
  EXPECT_EQ(pick({10, 8, 4}, p), 2);
}

TEST(Sampler, ForbiddenTokensAreNeverChosen) {
  EXPECT_EQ(pick({10, 8, 4}, greedy(), 0, {}, {}, {0, 1}), 2);
}

TEST(Sampler, FrequencyPenaltyCountsOutputOnly) {
  SamplingParams p = greedy();
  p.frequency_penalty = 1;
  EXPECT_EQ(pick({5, 4, 3.5F}, p, 0, {0, 0}, {}), 1);        // 5 - 2 = 3
  EXPECT_EQ(pick({5, 4, 3.5F}, p, 0, {}, {0, 0, 0, 0}), 0);  // the prompt does not count
  EXPECT_EQ(pick({5, 4, 3.5F}, p, 0, {0, 0, 1}, {}), 2);
}

TEST(Sampler, PresencePenaltyCountsOnce) {
  SamplingParams p = greedy();
  p.presence_penalty = 1;
  EXPECT_EQ(pick({5, 4.5F}, p, 0, {0, 0, 0, 0}), 1);
  EXPECT_EQ(pick({5, 3.9F}, p, 0, {0, 0, 0, 0}), 0);
}

TEST(Sampler, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  SamplingParams p = greedy();
  p.repetition_penalty = 2;
  EXPECT_EQ(pick({5, 3}, p, 0, {}, {0}), 1);       // 2.5 < 3, from the prompt
  EXPECT_EQ(pick({-1, -1.5F}, p, 0, {0}, {}), 1);  // -2 < -1.5
}

TEST(Sampler, LogprobsAreOfTheRawLogits) {
  SamplingParams p;
  p.temperature = 0;
  p.num_top_logprobs = 2;
  p.logit_bias = {{3, 100}};
  Sampler sampler;
  const SampledToken t = sampler.sample(
      {.logits = kTenths, .prompt = {}, .output = {}, .forbidden = {}, .position = 0}, p);
  EXPECT_EQ(t.token, 3);
  EXPECT_NEAR(t.logprob, std::log(0.1), 1e-6);
  ASSERT_EQ(t.top.size(), 2);
  EXPECT_EQ(t.top[0].token, 0);
  EXPECT_NEAR(t.top[0].logprob, std::log(0.4), 1e-6);
  EXPECT_EQ(t.top[1].token, 1);
}

TEST(SamplingParams, EachRangeIsNamed) {
  const auto param_of = [](auto change) {
    SamplingParams p;
    change(p);
    const Status status = validate(p, 4);
    return status.ok() ? std::string("ok") : status.error().param;
  };
  EXPECT_EQ(param_of([](SamplingParams&) {}), "ok");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.temperature = -0.1F; }), "temperature");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.temperature = kNaN; }), "temperature");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.top_p = 0; }), "top_p");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.top_p = 1.01F; }), "top_p");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.min_p = 1.5F; }), "min_p");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.typical_p = 0; }), "typical_p");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.repetition_penalty = 0; }), "repetition_penalty");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.frequency_penalty = 2.5F; }), "frequency_penalty");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.presence_penalty = kInf; }), "presence_penalty");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.top_k = -1; }), "top_k");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.logit_bias = {{4, 0}}; }), "logit_bias");
  EXPECT_EQ(param_of([](SamplingParams& p) { p.logit_bias = {{1, 101}}; }), "logit_bias");
}

}  // namespace
}  // namespace headrace
