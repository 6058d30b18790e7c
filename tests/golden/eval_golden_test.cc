// Perplexity of the tiny models over the reference's tokens as one window, against the same sum in
// double over the logits of Hugging Face transformers.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>

#include "eval/evaluate.h"
#include "golden/tiny_model.h"

namespace headrace {
namespace {

double reference_nll(const Reference& reference) {
  const int window = static_cast<int>(reference.tokens.size());
  double sum = 0;
  for (int i = first_scored(window); i < window - 1; ++i) {
    const std::span<const float> row = reference.row(i);
    double total = 0;
    for (const float logit : row) {
      total += std::exp(static_cast<double>(logit));
    }
    const TokenId next = reference.tokens[static_cast<std::size_t>(i + 1)];
    sum += std::log(total) - static_cast<double>(row[static_cast<std::size_t>(next)]);
  }
  return sum / num_scored(window);
}

TextWindows one_window(const Reference& reference) {
  return {.window_tokens = static_cast<int>(reference.tokens.size()),
          .tokens = reference.tokens,
          .text_tokens = reference.tokens.size()};
}

class EvalGolden : public testing::TestWithParam<std::string> {};

TEST_P(EvalGolden, PerplexityEqualsTransformersOnEveryTier) {
  const auto file = GgufFile::open(golden_path(GetParam() + ".gguf"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  const Reference reference = read_reference(GetParam());
  const double want = reference_nll(reference);
  ThreadPool pool(1);
  for (const std::string& tier : tiers()) {
    TinyModel tiny = make_tiny(*file, *read_config(*file), {.tier = tier});
    const EvalModel model{.runner = *tiny.runner, .kv = *tiny.kv};
    const auto result = evaluate(model, &model, one_window(reference), pool, {});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_NEAR(result->nll.mean, want, 1e-5 * want) << tier;
    EXPECT_EQ(result->against->kl_max, 0.0) << tier;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures,
                         EvalGolden,
                         testing::Values("llama", "qwen2", "gemma3"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace headrace
