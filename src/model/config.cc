#include "model/config.h"

#include <cmath>
#include <limits>

namespace headrace {
namespace {

constexpr int kMaxDim = 1 << 24;

Status check_positive(const GgufFile& file, const std::string& key, float value) {
  if (!std::isfinite(value) || value <= 0) {
    return make_error(
        ErrorCode::kCorrupt, "{}: '{}' is {}, not a positive number", file.name(), key, value);
  }
  return {};
}

Result<float> read_positive(const GgufFile& file, const std::string& key) {
  HR_ASSIGN_OR_RETURN(const float value, file.metadata().f32(key));
  HR_RETURN_IF_ERROR(check_positive(file, key, value));
  return value;
}

Result<float> read_positive_or(const GgufFile& file, const std::string& key, float otherwise) {
  HR_ASSIGN_OR_RETURN(const float value, file.metadata().f32_or(key, otherwise));
  HR_RETURN_IF_ERROR(check_positive(file, key, value));
  return value;
}

Status read_attention_shape(const GgufFile& file, ModelConfig& config) {
  const std::string& arch = config.architecture;
  HR_ASSIGN_OR_RETURN(config.num_heads, read_int(file, arch, "attention.head_count", 1, 4096));
  config.num_kv_heads = config.num_heads;
  if (file.metadata().has(arch + ".attention.head_count_kv")) {
    HR_ASSIGN_OR_RETURN(config.num_kv_heads,
                        read_int(file, arch, "attention.head_count_kv", 1, 4096));
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: {} heads are no multiple of {} KV heads",
                      file.name(),
                      config.num_heads,
                      config.num_kv_heads);
  }
  if (file.metadata().has(arch + ".attention.key_length")) {
    HR_ASSIGN_OR_RETURN(config.head_dim, read_int(file, arch, "attention.key_length", 1, 1024));
    HR_ASSIGN_OR_RETURN(const int value_dim,
                        read_int(file, arch, "attention.value_length", 1, 1024));
    if (value_dim != config.head_dim) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: keys of {} and values of {}: only equal sizes are supported",
                        file.name(),
                        config.head_dim,
                        value_dim);
    }
  } else if (config.hidden_size % config.num_heads != 0) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: hidden size {} is no multiple of {} heads",
                      file.name(),
                      config.hidden_size,
                      config.num_heads);
  } else {
    config.head_dim = config.hidden_size / config.num_heads;
  }
  if (config.head_dim % 16 != 0) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: a head of {} values: only multiples of 16 are supported",
                      file.name(),
                      config.head_dim);
  }
  config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim));
  return {};
}

Status read_rope(const GgufFile& file, ModelConfig& config) {
  const std::string prefix = config.architecture + ".rope.";
  HR_ASSIGN_OR_RETURN(config.rope.theta, read_positive_or(file, prefix + "freq_base", 10000.0F));
  config.rotary_dim = config.head_dim;
  if (file.metadata().has(prefix + "dimension_count")) {
    HR_ASSIGN_OR_RETURN(
        config.rotary_dim,
        read_int(file, config.architecture, "rope.dimension_count", 2, config.head_dim));
  }
  if (config.rotary_dim % 2 != 0) {
    return make_error(ErrorCode::kCorrupt, "{}: '{}dimension_count' is odd", file.name(), prefix);
  }
  // A factor whose type is not said is linear.
  const bool has_factor = file.metadata().has(prefix + "scaling.factor");
  HR_ASSIGN_OR_RETURN(
      const auto scaling,
      file.metadata().string_or(prefix + "scaling.type", has_factor ? "linear" : "none"));
  if (scaling == "linear") {
    HR_ASSIGN_OR_RETURN(config.rope.linear_factor, read_positive(file, prefix + "scaling.factor"));
  } else if (scaling == "none" || scaling.empty()) {
    HR_ASSIGN_OR_RETURN(config.rope.linear_factor,
                        read_positive_or(file, prefix + "scale_linear", 1.0F));
  } else {
    return make_error(ErrorCode::kUnsupported,
                      "{}: RoPE scaling '{}' is not supported; 'none' and 'linear' are",
                      file.name(),
                      scaling);
  }
  config.rope_local = config.rope;
  return {};
}

}  // namespace

Result<int> read_int(const GgufFile& file,
                     const std::string& architecture,
                     const std::string& key,
                     int low,
                     int high) {
  const std::string full_key = architecture + "." + key;
  HR_ASSIGN_OR_RETURN(const std::uint64_t value, file.metadata().u64(full_key));
  if (value < static_cast<std::uint64_t>(low) || value > static_cast<std::uint64_t>(high)) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: '{}' is {}, not in [{}, {}]",
                      file.name(),
                      full_key,
                      value,
                      low,
                      high);
  }
  return static_cast<int>(value);
}

Result<ModelConfig> read_common_config(const GgufFile& file) {
  ModelConfig config;
  HR_ASSIGN_OR_RETURN(const auto architecture, file.metadata().string("general.architecture"));
  config.architecture = std::string(architecture);
  const std::string& arch = config.architecture;
  HR_ASSIGN_OR_RETURN(config.hidden_size, read_int(file, arch, "embedding_length", 1, kMaxDim));
  HR_ASSIGN_OR_RETURN(config.intermediate_size,
                      read_int(file, arch, "feed_forward_length", 1, kMaxDim));
  HR_ASSIGN_OR_RETURN(config.num_layers, read_int(file, arch, "block_count", 1, 1024));
  HR_ASSIGN_OR_RETURN(config.max_position_embeddings,
                      read_int(file, arch, "context_length", 1, kMaxDim));
  HR_ASSIGN_OR_RETURN(config.rms_norm_eps,
                      read_positive(file, arch + ".attention.layer_norm_rms_epsilon"));
  HR_RETURN_IF_ERROR(read_attention_shape(file, config));
  HR_RETURN_IF_ERROR(read_rope(file, config));
  HR_ASSIGN_OR_RETURN(const TensorView embedding, file.tensor("token_embd.weight"));
  if (embedding.shape.size() != 2 || embedding.num_rows() > kMaxDim ||
      embedding.num_cols() != config.hidden_size) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: tensor 'token_embd.weight' is not [vocabulary, {}]",
                      file.name(),
                      config.hidden_size);
  }
  config.vocab_size = static_cast<int>(embedding.num_rows());
  return config;
}

}  // namespace headrace
