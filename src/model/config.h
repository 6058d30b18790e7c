// A model's shape and constants, by Hugging Face's names, read from the file's metadata and
// checked. Constant once read.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "kernels/backend.h"

namespace headrace {

struct RopeConfig {
  float theta = 10000.0F;
  float linear_factor = 1.0F;  // positions are divided by it
};

struct ModelConfig {
  std::string architecture;  // GGUF's: "llama", "qwen2", "gemma3"
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int max_position_embeddings = 0;
  float rms_norm_eps = 0;
  RopeConfig rope;
  RopeConfig rope_local;  // of window layers, where they have their own
  int rotary_dim = 0;
  float attention_scale = 0;  // of q.k
  int sliding_window = 0;     // 0: none
  int sliding_window_pattern =
      0;  // n: every n-th layer attends to everything, the others to the window
};

// Reads the keys that every architecture has; an architecture's own file reads the rest. kCorrupt
// names the key.
Result<ModelConfig> read_common_config(const GgufFile& file);

// An integer key of the model's architecture in [low, high], e.g. "attention.head_count" for
// "llama.attention....".
Result<int> read_int(const GgufFile& file,
                     const std::string& architecture,
                     const std::string& key,
                     int low,
                     int high);

}  // namespace headrace
