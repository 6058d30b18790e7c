#include "golden/tiny_model.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

namespace headrace {
namespace {

template <typename T>
T unwrap(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().message;
    std::abort();
  }
  return *std::move(result);
}

}  // namespace

std::string golden_path(const std::string& file) {
  return std::string(HEADRACE_TEST_DATA) + "/golden/" + file;
}

Reference read_reference(const std::string& name) {
  std::ifstream file(golden_path(name + ".logits"), std::ios::binary);
  std::int32_t header[3] = {};
  file.read(reinterpret_cast<char*>(header), sizeof(header));
  Reference reference{
      .prompt_tokens = header[1], .vocab_size = header[2], .tokens = {}, .logits = {}};
  reference.tokens.resize(static_cast<std::size_t>(header[0]));
  reference.logits.resize(reference.tokens.size() * static_cast<std::size_t>(header[2]));
  file.read(reinterpret_cast<char*>(reference.tokens.data()),
            static_cast<std::streamsize>(reference.tokens.size() * 4));
  file.read(reinterpret_cast<char*>(reference.logits.data()),
            static_cast<std::streamsize>(reference.logits.size() * 4));
  EXPECT_TRUE(file.good()) << name;
  return reference;
}

TinyModel make_tiny(const GgufFile& file, const ModelConfig& config, const TinyOptions& options) {
  auto backend = unwrap(make_cpu_backend(
      {.num_threads = options.num_threads, .tier = options.tier, .stream = options.stream}));
  auto model = unwrap(load_model(file, config, *backend));
  const KvLayout layout = plan_kv_layout(model->kv_shape(), options.kv_type, *backend);
  auto storage =
      unwrap(KvStorage::create(model->kv_shape(), options.kv_type, options.num_blocks, *backend));
  const RunnerLimits limits{.max_rows = 128,
                            .max_sequences = 32,
                            .max_logit_rows = 64,
                            .max_context = config.max_position_embeddings};
  return {
      .runner = unwrap(
          ModelRunner::create(std::move(backend), std::move(model), std::move(storage), limits)),
      .kv = std::make_unique<KvManager>(
          layout.groups, options.num_blocks, kBlockTokens, options.prefix_cache),
  };
}

std::vector<std::string> tiers() {
  std::vector<std::string> found;
  for (const char* tier : {"scalar", "avx2", "avx512vnni"}) {
    if (make_cpu_backend({.num_threads = 1, .tier = tier}).ok()) {
      found.emplace_back(tier);
    }
  }
  return found;
}

}  // namespace headrace
