#include "eval/evaluate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "support/byte_tokenizer.h"
#include "support/fake_runner.h"

namespace headrace {
namespace {

using testing::FakeRunner;

constexpr int kVocab = 300;

// A fake model with its cache. Few rows a step, so that windows are computed in pieces.
struct Fake {
  explicit Fake(FakeRunner::LogitsFn logits, int max_rows = 7, int max_logit_rows = 3)
      : runner({.limits = {.max_rows = max_rows,
                           .max_sequences = 1,
                           .max_logit_rows = max_logit_rows,
                           .max_context = 64},
                .vocab_size = kVocab,
                .logits = std::move(logits)}),
        kv({{}}, 8, 16, false) {}
  EvalModel model() { return {.runner = runner, .kv = kv}; }

  FakeRunner runner;
  KvManager kv;
};

// The token after `last` has probability p if it is the next byte; the others share the rest.
FakeRunner::LogitsFn next_byte_has(double p) {
  return [p](std::span<const TokenId> prefix, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), 0.0F);
    const auto next = static_cast<std::size_t>(prefix.back() + 1);
    logits[next] = static_cast<float>(std::log(p / (1 - p) * (kVocab - 1)));
  };
}

TextWindows windows_of(const std::string& text, int window_tokens, int max_windows = 0) {
  auto windows = cut_windows(*testing::make_byte_tokenizer(), text, window_tokens, max_windows);
  EXPECT_TRUE(windows.ok()) << windows.error().message;
  return *std::move(windows);
}

std::string alphabet(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text.push_back(static_cast<char>('A' + i % 26));
  }
  return text;
}

TEST(Windows, AreTheTextInOrderWithoutItsRest) {
  const TextWindows windows = windows_of("abcdefghijk", 4);
  EXPECT_EQ(windows.count(), 2);
  EXPECT_EQ(windows.text_tokens, 11);
  EXPECT_EQ(std::vector<TokenId>(windows.tokens), testing::bytes_of("abcdefgh"));
}

TEST(Windows, FewerAreSpreadOverTheText) {
  EXPECT_EQ(windows_of("aaaabbbbccccdddd", 4, 2).tokens, testing::bytes_of("aaaacccc"));
}

TEST(Windows, ATextWithoutAWholeOneIsAnError) {
  const auto windows = cut_windows(*testing::make_byte_tokenizer(), "abc", 4, 0);
  ASSERT_FALSE(windows.ok());
  EXPECT_EQ(windows.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(windows.error().message.find("3 tokens, not one window of 4"), std::string::npos);
}

TEST(Windows, TheSecondHalfIsScoredButItsLastToken) {
  EXPECT_EQ(first_scored(512), 256);
  EXPECT_EQ(num_scored(512), 255);
  EXPECT_EQ(num_scored(4), 1);
}

TEST(Evaluate, PerplexityIsTheInverseOfAConstantProbability) {
  Fake fake(next_byte_has(0.25));
  ThreadPool pool(2);
  const TextWindows windows = windows_of(alphabet(20), 20);  // within A..T the next byte follows
  const auto result = evaluate(fake.model(), nullptr, windows, pool, {});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->num_tokens, 9);
  EXPECT_NEAR(perplexity(result->nll.mean), 4.0, 1e-5);
  EXPECT_FALSE(result->against.has_value());
}

// Windows of 26 begin with A each; in the first the next byte follows, in the second never.
TEST(Evaluate, ErrorIsThatOfTheWindowsMeans) {
  Fake fake(next_byte_has(0.5));
  ThreadPool pool(1);
  const TextWindows windows = windows_of(alphabet(26) + std::string(26, 'x'), 26);
  const auto result = evaluate(fake.model(), nullptr, windows, pool, {});
  ASSERT_TRUE(result.ok());
  const double first = std::log(2.0);
  const double second = -std::log(0.5 / (kVocab - 1));
  EXPECT_NEAR(result->nll.mean, (first + second) / 2, 1e-5);
  EXPECT_NEAR(result->nll.standard_error, (second - first) / 2, 1e-5);
}

TEST(Evaluate, AgainstAReference) {
  Fake fake(next_byte_has(0.25), 5, 2);
  Fake reference(next_byte_has(0.5), 16, 9);  // other limits: blocks are the smaller one's
  ThreadPool pool(1);
  const EvalModel reference_model = reference.model();
  const auto result =
      evaluate(fake.model(), &reference_model, windows_of(alphabet(20), 20), pool, {});
  ASSERT_TRUE(result.ok());
  const Divergence& against = *result->against;
  EXPECT_NEAR(perplexity(against.reference_nll.mean), 2.0, 1e-5);
  EXPECT_NEAR(perplexity_change_pct(against.nll_change), 100.0, 1e-3);
  // 0.5 log(0.5/0.25) + 0.5 log(0.5/0.75)
  EXPECT_NEAR(against.kl.mean, 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-6);
  EXPECT_NEAR(against.kl_p99, against.kl.mean, 1e-6);
  EXPECT_EQ(against.top1_agreement.mean, 1.0);
}

TEST(Evaluate, AnotherTopTokenIsNoAgreement) {
  Fake fake([](std::span<const TokenId>, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), 0.0F);
    logits[1] = 1.0F;
  });
  Fake reference(next_byte_has(0.5));
  ThreadPool pool(1);
  const EvalModel reference_model = reference.model();
  const auto result =
      evaluate(fake.model(), &reference_model, windows_of(alphabet(20), 20), pool, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->against->top1_agreement.mean, 0.0);
}

TEST(Evaluate, LogitsThatAreNoNumbersEndIt) {
  Fake fake([](std::span<const TokenId>, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), std::numeric_limits<float>::quiet_NaN());
  });
  ThreadPool pool(1);
  const auto result = evaluate(fake.model(), nullptr, windows_of(alphabet(20), 20), pool, {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("window 0: the model's logits are not numbers"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace
