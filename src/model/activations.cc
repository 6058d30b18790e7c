#include <iterator>

#include "model/model.h"

namespace headrace {

ActivationPlan plan_activations(const ModelConfig& config, int max_rows, int max_logit_rows) {
  const auto rows = static_cast<std::size_t>(max_rows);
  const auto logit_rows = static_cast<std::size_t>(max_logit_rows);
  const auto hidden = static_cast<std::size_t>(config.hidden_size);
  const auto q_dim =
      static_cast<std::size_t>(config.num_heads) * static_cast<std::size_t>(config.head_dim);
  const auto kv_dim =
      static_cast<std::size_t>(config.num_kv_heads) * static_cast<std::size_t>(config.head_dim);
  const auto rotary = static_cast<std::size_t>(config.rotary_dim);
  const std::size_t sizes[] = {rows * hidden,
                               rows * hidden,
                               rows * q_dim,
                               rows * kv_dim,
                               rows * kv_dim,
                               rows * q_dim,
                               rows * static_cast<std::size_t>(config.intermediate_size),
                               rows * rotary,
                               rows * rotary,
                               logit_rows * hidden,
                               logit_rows * static_cast<std::size_t>(config.vocab_size)};
  static_assert(std::size(sizes) == std::size(decltype(ActivationPlan::offsets){}));
  ActivationPlan plan;
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    plan.offsets[i] = plan.num_floats;
    plan.num_floats += (sizes[i] + 15) / 16 * 16;  // each array starts on a cache line
  }
  return plan;
}

Activations ActivationPlan::at(float* base) const {
  return {.x = base + offsets[0],
          .y = base + offsets[1],
          .q = base + offsets[2],
          .k = base + offsets[3],
          .v = base + offsets[4],
          .attention = base + offsets[5],
          .mlp = base + offsets[6],
          .cos_sin = base + offsets[7],
          .cos_sin_local = base + offsets[8],
          .last = base + offsets[9],
          .logits = base + offsets[10]};
}

}  // namespace headrace
