// A tiny model of tests/data/golden on a backend, with its reference logits. For tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "model/model.h"
#include "runner/model_runner.h"

namespace headrace {

struct Reference {
  int prompt_tokens = 0;
  int vocab_size = 0;
  std::vector<TokenId> tokens;
  std::vector<float> logits;  // [tokens, V]

  std::span<const float> row(int i) const {
    const auto v = static_cast<std::size_t>(vocab_size);
    return {logits.data() + static_cast<std::size_t>(i) * v, v};
  }
};

std::string golden_path(const std::string& file);
Reference read_reference(const std::string& name);

struct TinyModel {
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<KvManager> kv;
};

struct TinyOptions {
  std::string tier = {};
  int num_threads = 1;
  KvType kv_type = KvType::kF32;
  StreamMode stream = StreamMode::kEager;
  int num_blocks = 200;
  bool prefix_cache = false;
};

// The file with this configuration, which a test may have changed.
TinyModel make_tiny(const GgufFile& file, const ModelConfig& config, const TinyOptions& options);

// The tiers that this machine has.
std::vector<std::string> tiers();

}  // namespace headrace
