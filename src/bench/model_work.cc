#include "bench/model_work.h"

#include <algorithm>

namespace headrace {

ModelWork count_work(const GgufFile& file,
                     const ModelConfig& config,
                     const KvShape& kv,
                     double kv_token_bytes) {
  ModelWork work;
  work.kv_token_bytes = kv_token_bytes;
  work.head_values = static_cast<double>(config.num_heads) * config.head_dim;
  work.layer_windows = kv.layer_windows;
  const bool own_head = file.find("output.weight") != nullptr;
  double float_params = 0;
  for (const TensorView& tensor : file.tensors()) {
    if (tensor.name != "token_embd.weight" || !own_head) {
      work.weight_bytes += static_cast<double>(tensor.data.size());
    }
    if (tensor.name.starts_with("blk.") && tensor.shape.size() == 2) {
      const auto params = static_cast<double>(tensor.num_rows() * tensor.num_cols());
      work.linear_params += params;
      float_params += is_quantized(tensor.dtype) ? 0 : params;
    }
  }
  work.float_weights = 2 * float_params > work.linear_params;
  return work;
}

double tokens_seen(const ModelWork& work, int position) {
  double seen = 0;
  for (const int window : work.layer_windows) {
    seen += window > 0 ? std::min(window, position + 1) : position + 1;
  }
  return seen;
}

double tokens_seen_by(const ModelWork& work, int first, int count) {
  double seen = 0;
  for (int position = first; position < first + count; ++position) {
    seen += tokens_seen(work, position);
  }
  return seen;
}

double linear_ops(const ModelWork& work, double num_tokens) {
  return 2 * work.linear_params * num_tokens;
}

double attention_ops(const ModelWork& work, int first, int count) {
  return 4 * work.head_values * tokens_seen_by(work, first, count);
}

double kv_bytes_per_step(const ModelWork& work, int first, int count) {
  return work.kv_token_bytes * tokens_seen_by(work, first, count) / count;
}

}  // namespace headrace
