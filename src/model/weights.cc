#include "model/weights.h"

#include <array>
#include <cmath>
#include <cstring>
#include <fmt/ranges.h>
#include <utility>

#include "quant/dequantize.h"

namespace headrace {
namespace {

// Hugging Face's name -> GGUF's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kNames = {{
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"q_proj", "attn_q"},
    {"k_proj", "attn_k"},
    {"v_proj", "attn_v"},
    {"o_proj", "attn_output"},
    {"q_norm", "attn_q_norm"},
    {"k_norm", "attn_k_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"gate_proj", "ffn_gate"},
    {"up_proj", "ffn_up"},
    {"down_proj", "ffn_down"},
    // Models with a norm behind each part: Hugging Face calls what GGUF names ffn_norm
    // pre_feedforward_layernorm.
    {"post_attention_norm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"rope_freqs", "rope_freqs"},
}};

std::string gguf_name(int layer_idx, std::string_view name, std::string_view suffix) {
  for (const auto& [hf, gguf] : kNames) {
    if (hf == name) {
      return layer_idx < 0 ? fmt::format("{}.{}", gguf, suffix)
                           : fmt::format("blk.{}.{}.{}", layer_idx, gguf, suffix);
    }
  }
  HR_CHECK(!"a tensor name that the table lacks");
  return {};
}

}  // namespace

bool WeightLoader::has(int layer_idx, std::string_view name) const {
  return file_.find(gguf_name(layer_idx, name, "weight")) != nullptr;
}

Status WeightLoader::check_all_used() const {
  for (const TensorView& tensor : file_.tensors()) {
    if (!used_.contains(std::string(tensor.name))) {
      return make_error(
          ErrorCode::kUnsupported,
          "{}: tensor '{}' is none of this architecture's: leaving it out would give wrong answers",
          file_.name(),
          tensor.name);
    }
  }
  return {};
}

Result<TensorView> WeightLoader::find(const std::string& name, int num_rows, int num_cols) {
  HR_ASSIGN_OR_RETURN(TensorView view, file_.tensor(name));
  used_.insert(name);
  const std::vector<std::int64_t> wanted = num_rows < 0
                                               ? std::vector<std::int64_t>{num_cols}
                                               : std::vector<std::int64_t>{num_rows, num_cols};
  if (view.shape != wanted) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: tensor '{}' has shape [{}], not [{}]",
                      file_.name(),
                      name,
                      fmt::join(view.shape, ", "),
                      fmt::join(wanted, ", "));
  }
  return view;
}

Result<std::unique_ptr<Weight>> WeightLoader::linear(
    int layer_idx, std::string_view name, int num_rows, int num_cols, const PackOptions& options) {
  HR_ASSIGN_OR_RETURN(const TensorView view,
                      find(gguf_name(layer_idx, name, "weight"), num_rows, num_cols));
  auto packed = backend_.pack(view, options);
  if (packed.ok()) {
    file_.drop(view.data);
  }
  return packed;
}

Result<Vector> WeightLoader::float_vector(const std::string& name, int size) {
  HR_ASSIGN_OR_RETURN(const TensorView view, find(name, -1, size));
  std::vector<float> values(static_cast<std::size_t>(size));
  dequantize_row(view.dtype, view.data.data(), values.data(), size);
  Vector vector;
  HR_ASSIGN_OR_RETURN(vector.buffer,
                      backend_.alloc(values.size() * sizeof(float), MemoryPart::kWeights));
  backend_.upload(vector.buffer.as<float>(), values.data(), values.size() * sizeof(float));
  backend_.synchronize();
  return vector;
}

Result<Vector> WeightLoader::vector(int layer_idx, std::string_view name, int size) {
  return float_vector(gguf_name(layer_idx, name, "weight"), size);
}

Result<Vector> WeightLoader::bias(int layer_idx, std::string_view name, int size) {
  return float_vector(gguf_name(layer_idx, name, "bias"), size);
}

Result<std::vector<float>> WeightLoader::rope_factors(int rotary_dim) {
  const std::string name = gguf_name(-1, "rope_freqs", "weight");
  if (file_.find(name) == nullptr) {
    return std::vector<float>{};
  }
  HR_ASSIGN_OR_RETURN(const TensorView view, find(name, -1, rotary_dim / 2));
  std::vector<float> factors(static_cast<std::size_t>(rotary_dim / 2));
  dequantize_row(view.dtype, view.data.data(), factors.data(), rotary_dim / 2);
  for (const float factor : factors) {
    if (!std::isfinite(factor) || factor <= 0) {
      return make_error(ErrorCode::kCorrupt,
                        "{}: tensor '{}' holds {}, not a positive number",
                        file_.name(),
                        name,
                        factor);
    }
  }
  return factors;
}

}  // namespace headrace
