// Each architecture against Hugging Face transformers in float32: a prefill and greedy steps of a
// tiny random model (scripts/golden/make_tiny_models.py), on every tier, and the proof that each
// field of the configuration matters.
#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "golden/tiny_model.h"
#include "model/weights.h"

namespace headrace {
namespace {

constexpr double kTolerance = 1e-5;

double row_error(std::span<const float> got, std::span<const float> want) {
  double difference = 0;
  double scale = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference =
        std::max(difference, std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    scale = std::max(scale, std::fabs(static_cast<double>(want[i])));
  }
  return difference / scale;
}

// The largest relative error of any row: the prompt in one step, then the reference's own tokens
// one by one.
double largest_error(TinyModel& tiny, const Reference& reference) {
  const TableId table = tiny.kv->open(0);
  double error = 0;
  const auto run = [&](int first, int count) {
    ASSERT_TRUE(tiny.kv->reserve(table, first, first + count));
    const SequenceRows rows{
        .tokens = std::span(reference.tokens)
                      .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
        .num_computed = first,
        .table = table,
        .num_logits = count};
    ASSERT_TRUE(tiny.runner->run({&rows, 1}, *tiny.kv, nullptr));
    for (int i = 0; i < count; ++i) {
      error = std::max(error, row_error(tiny.runner->logits(i), reference.row(first + i)));
    }
  };
  run(0, reference.prompt_tokens);
  for (int i = reference.prompt_tokens; i < static_cast<int>(reference.tokens.size()); ++i) {
    run(i, 1);
  }
  tiny.kv->close(table);
  return error;
}

class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  GgufFile open() {
    auto file = GgufFile::open(golden_path(GetParam() + ".gguf"));
    EXPECT_TRUE(file.ok()) << file.error().message;
    return *std::move(file);
  }
};

TEST_P(GoldenModel, LogitsEqualTransformersOnEveryTier) {
  const GgufFile file = open();
  const Reference reference = read_reference(GetParam());
  const auto config = read_config(file);
  ASSERT_TRUE(config.ok()) << config.error().message;
  for (const std::string& tier : tiers()) {
    TinyModel tiny = make_tiny(file, *config, {.tier = tier});
    EXPECT_LE(largest_error(tiny, reference), kTolerance) << tier;
  }
}

TEST_P(GoldenModel, LazyStreamGivesTheSameLogits) {
  const GgufFile file = open();
  const Reference reference = read_reference(GetParam());
  TinyModel tiny = make_tiny(file, *read_config(file), {.stream = StreamMode::kLazy});
  EXPECT_LE(largest_error(tiny, reference), kTolerance);
}

TEST_P(GoldenModel, ATensorThatNobodyReadsIsNamed) {
  const GgufFile file = open();
  const auto config = read_config(file);
  ASSERT_TRUE(config.ok());
  auto backend = make_cpu_backend({.num_threads = 1, .tier = ""});
  ASSERT_TRUE(backend.ok());
  WeightLoader loader(file, **backend);
  ASSERT_TRUE(loader.vector(-1, "norm", config->hidden_size).ok());
  const Status status = loader.check_all_used();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(status.error().message.find("tensor 'token_embd.weight' is none"), std::string::npos)
      << status.error().message;
}

struct Change {
  std::string name;
  std::function<void(ModelConfig&)> apply;
};

std::vector<Change> changes_of(const std::string& architecture) {
  std::vector<Change> changes = {
      {"RoPE base", [](ModelConfig& c) { c.rope.theta *= 1.5F; }},
      {"epsilon", [](ModelConfig& c) { c.rms_norm_eps *= 1.5F; }},
      {"attention scale", [](ModelConfig& c) { c.attention_scale *= 1.2F; }},
      {"heads",
       [](ModelConfig& c) {
         c.num_heads *= 2;
         c.num_kv_heads *= 2;
         c.head_dim /= 2;
         c.rotary_dim /= 2;
       }},
      {"RoPE scaling", [](ModelConfig& c) { c.rope.linear_factor *= 2; }},
      {"rotary dimensions", [](ModelConfig& c) { c.rotary_dim /= 2; }},
  };
  if (architecture ==
      "llama") {  // its heads have the least size that is supported: fewer, larger ones
    changes[3].apply = [](ModelConfig& c) {
      c.num_heads /= 2;
      c.num_kv_heads /= 2;
      c.head_dim *= 2;
      c.rotary_dim *= 2;
    };
  }
  if (architecture == "qwen2") {
    changes[3].apply = changes_of("llama")[3].apply;
  }
  if (architecture == "gemma3") {
    changes[3].apply = [](ModelConfig& c) {  // q_norm and k_norm fix the size of a head; other
                                             // heads share a KV head
      std::swap(c.rope, c.rope_local);
    };
    changes[3].name = "which RoPE is local";
    changes.push_back({"local RoPE base", [](ModelConfig& c) { c.rope_local.theta *= 1.5F; }});
    changes.push_back({"window", [](ModelConfig& c) { c.sliding_window += 1; }});
    changes.push_back({"window pattern", [](ModelConfig& c) { c.sliding_window_pattern = 2; }});
  }
  return changes;
}

TEST_P(GoldenModel, EveryFieldOfTheConfigurationMovesTheLogits) {
  const GgufFile file = open();
  const Reference reference = read_reference(GetParam());
  for (const Change& change : changes_of(GetParam())) {
    ModelConfig config = *read_config(file);
    change.apply(config);
    TinyModel tiny = make_tiny(file, config, {});
    EXPECT_GE(largest_error(tiny, reference), 100 * kTolerance) << change.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures,
                         GoldenModel,
                         testing::Values("llama", "qwen2", "gemma3"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace headrace
