// How much work a model's step is, counted from its file and shape: what shares of the machine's
// limits are computed from. Pure functions.
#pragma once

#include <vector>

#include "formats/gguf.h"
#include "kv/kv_storage.h"
#include "model/config.h"

namespace headrace {

struct ModelWork {
  double linear_params = 0;  // of the layers' matrices: no embedding, no output head
  double weight_bytes =
      0;  // that a step reads, as in the file: all but an embedding that is no output head
  bool float_weights = false;      // most of linear_params are floats
  double kv_token_bytes = 0;       // K and V of a token in one layer
  double head_values = 0;          // num_heads * head_dim
  std::vector<int> layer_windows;  // 0: full attention
};

// kv_token_bytes: of one layer.
ModelWork count_work(const GgufFile& file,
                     const ModelConfig& config,
                     const KvShape& kv,
                     double kv_token_bytes);

// Tokens that the query at `position` sees, summed over the layers.
double tokens_seen(const ModelWork& work, int position);
// The same summed over positions [first, first + count).
double tokens_seen_by(const ModelWork& work, int first, int count);

// Operations, a multiply-add being two: of the linear layers a token, and of attention's two
// products.
double linear_ops(const ModelWork& work, double num_tokens);
double attention_ops(const ModelWork& work, int first, int count);

// Bytes that a decode step of one sequence reads from the cache, on average over positions [first,
// first + count).
double kv_bytes_per_step(const ModelWork& work, int first, int count);

}  // namespace headrace
