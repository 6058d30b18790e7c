#include "bench/model_work.h"

#include <gtest/gtest.h>

#include "model/model.h"

namespace headrace {
namespace {

ModelWork two_layers() {
  ModelWork work;
  work.linear_params = 1000;
  work.weight_bytes = 600;
  work.kv_token_bytes = 8;
  work.head_values = 16;
  work.layer_windows = {0, 4};
  return work;
}

TEST(ModelWork, AWindowLayerSeesItsWindow) {
  const ModelWork work = two_layers();
  EXPECT_DOUBLE_EQ(tokens_seen(work, 0), 2);
  EXPECT_DOUBLE_EQ(tokens_seen(work, 3), 8);
  EXPECT_DOUBLE_EQ(tokens_seen(work, 9), 10 + 4);
  EXPECT_DOUBLE_EQ(tokens_seen_by(work, 3, 2), 8 + 9);
}

TEST(ModelWork, AMultiplyAddIsTwoOperations) {
  const ModelWork work = two_layers();
  EXPECT_DOUBLE_EQ(linear_ops(work, 3), 6000);
  // Two products of 16 values for each token seen.
  EXPECT_DOUBLE_EQ(attention_ops(work, 3, 2), 4 * 16 * 17);
}

TEST(ModelWork, AStepReadsTheKeysAndValuesItSees) {
  // 8 and 9 tokens of 8 bytes, on average.
  EXPECT_DOUBLE_EQ(kv_bytes_per_step(two_layers(), 3, 2), 68);
}

TEST(ModelWork, IsCountedFromTheFile) {
  auto file = GgufFile::open(HEADRACE_TEST_DATA "/golden/llama.gguf");
  ASSERT_TRUE(file.ok());
  const auto config = read_config(*file);
  ASSERT_TRUE(config.ok());
  const KvShape kv{config->num_kv_heads,
                   config->head_dim,
                   std::vector<int>(static_cast<std::size_t>(config->num_layers), 0)};
  const ModelWork work = count_work(*file, *config, kv, 128);
  const double h = config->hidden_size;
  const double attention = 2 * h * config->num_heads * config->head_dim +
                           2 * h * config->num_kv_heads * config->head_dim;
  const double mlp = 3 * h * config->intermediate_size;
  EXPECT_DOUBLE_EQ(work.linear_params, config->num_layers * (attention + mlp));
  EXPECT_TRUE(work.float_weights);
  double all = 0;
  for (const TensorView& tensor : file->tensors()) {
    all += static_cast<double>(tensor.data.size());
  }
  const double embedding = static_cast<double>(file->find("token_embd.weight")->data.size());
  EXPECT_DOUBLE_EQ(work.weight_bytes,
                   file->find("output.weight") != nullptr ? all - embedding : all);
}

}  // namespace
}  // namespace headrace
