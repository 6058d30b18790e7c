#include "model/config.h"

#include <gtest/gtest.h>

#include "formats/gguf_test_writer.h"

namespace headrace {
namespace {

using testing_gguf::Bytes;
using testing_gguf::scalar;
using testing_gguf::text;

// A llama of 64 values and one tensor, with these entries more.
Result<ModelConfig> config_with(const std::vector<Bytes>& more) {
  testing_gguf::File file;
  file.entries = {text("general.architecture", "llama"),
                  scalar<std::uint32_t>("llama.embedding_length", 64),
                  scalar<std::uint32_t>("llama.feed_forward_length", 128),
                  scalar<std::uint32_t>("llama.block_count", 2),
                  scalar<std::uint32_t>("llama.context_length", 256),
                  scalar<std::uint32_t>("llama.attention.head_count", 2),
                  scalar<float>("llama.attention.layer_norm_rms_epsilon", 1e-5F)};
  file.entries.insert(file.entries.end(), more.begin(), more.end());
  file.tensors = {{.name = "token_embd.weight", .dims = {64, 4}, .type = 0}};
  file.data_bytes = 1024;
  const std::vector<std::byte> bytes = file.write();
  HR_ASSIGN_OR_RETURN(const GgufFile parsed, GgufFile::parse(bytes, "tiny.gguf"));
  return read_common_config(parsed);
}

TEST(ModelConfig, ARopeFactorIsLinearUnlessItsTypeIsSaid) {
  const Bytes factor = scalar<float>("llama.rope.scaling.factor", 8);
  EXPECT_EQ(config_with({})->rope.linear_factor, 1.0F);
  EXPECT_EQ(config_with({factor})->rope.linear_factor, 8.0F);
  EXPECT_EQ(config_with({factor, text("llama.rope.scaling.type", "linear")})->rope.linear_factor,
            8.0F);
  EXPECT_EQ(config_with({factor, text("llama.rope.scaling.type", "none")})->rope.linear_factor,
            1.0F);
  EXPECT_EQ(config_with({scalar<float>("llama.rope.scale_linear", 4)})->rope.linear_factor, 4.0F);
}

TEST(ModelConfig, ScalingThatIsNotBuiltIsRefused) {
  const auto config = config_with({text("llama.rope.scaling.type", "yarn")});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace headrace
