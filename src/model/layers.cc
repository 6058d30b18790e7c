#include "model/layers.h"

#include <array>
#include <cmath>
#include <utility>

namespace headrace {

Result<Attention> load_attention(WeightLoader& loader,
                                 const ModelConfig& config,
                                 int layer_idx,
                                 AttentionTraits traits) {
  const int q_dim = config.num_heads * config.head_dim;
  const int kv_dim = config.num_kv_heads * config.head_dim;
  Attention a;
  HR_ASSIGN_OR_RETURN(a.q_proj, loader.linear(layer_idx, "q_proj", q_dim, config.hidden_size));
  HR_ASSIGN_OR_RETURN(a.k_proj, loader.linear(layer_idx, "k_proj", kv_dim, config.hidden_size));
  HR_ASSIGN_OR_RETURN(a.v_proj, loader.linear(layer_idx, "v_proj", kv_dim, config.hidden_size));
  HR_ASSIGN_OR_RETURN(
      a.o_proj,
      loader.linear(
          layer_idx, "o_proj", config.hidden_size, q_dim, {.k_split = KSplit::kFourSegments}));
  if (traits.bias == Has::kYes) {
    HR_ASSIGN_OR_RETURN(a.q_bias, loader.bias(layer_idx, "q_proj", q_dim));
    HR_ASSIGN_OR_RETURN(a.k_bias, loader.bias(layer_idx, "k_proj", kv_dim));
    HR_ASSIGN_OR_RETURN(a.v_bias, loader.bias(layer_idx, "v_proj", kv_dim));
  }
  if (traits.qk_norm == Has::kYes) {
    HR_ASSIGN_OR_RETURN(a.q_norm, loader.vector(layer_idx, "q_norm", config.head_dim));
    HR_ASSIGN_OR_RETURN(a.k_norm, loader.vector(layer_idx, "k_norm", config.head_dim));
  }
  return a;
}

Result<Mlp> load_mlp(WeightLoader& loader, const ModelConfig& config, int layer_idx) {
  Mlp mlp;
  HR_ASSIGN_OR_RETURN(
      mlp.gate_proj,
      loader.linear(layer_idx, "gate_proj", config.intermediate_size, config.hidden_size));
  HR_ASSIGN_OR_RETURN(
      mlp.up_proj,
      loader.linear(layer_idx, "up_proj", config.intermediate_size, config.hidden_size));
  HR_ASSIGN_OR_RETURN(mlp.down_proj,
                      loader.linear(layer_idx,
                                    "down_proj",
                                    config.hidden_size,
                                    config.intermediate_size,
                                    {.k_split = KSplit::kFourSegments}));
  return mlp;
}

Result<Rotary> make_rotary(WeightLoader& loader,
                           const ModelConfig& config,
                           const RopeConfig& rope) {
  HR_ASSIGN_OR_RETURN(const std::vector<float> factors, loader.rope_factors(config.rotary_dim));
  std::vector<float> inv_freq(static_cast<std::size_t>(config.rotary_dim / 2));
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    // The exponent and the power are rounded to float32 one after the other, as the reference does.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.rotary_dim);
    inv_freq[i] = 1.0F / static_cast<float>(std::pow(static_cast<double>(rope.theta),
                                                     static_cast<double>(exponent)));
    inv_freq[i] /= rope.linear_factor;
    if (!factors.empty()) {
      inv_freq[i] /= factors[i];
    }
  }
  Rotary rotary;
  const std::size_t bytes = inv_freq.size() * sizeof(float);
  HR_ASSIGN_OR_RETURN(rotary.inv_freq.buffer, loader.backend().alloc(bytes, MemoryPart::kWeights));
  loader.backend().upload(rotary.inv_freq.buffer.as<float>(), inv_freq.data(), bytes);
  loader.backend().synchronize();
  return rotary;
}

Result<Head> load_head(WeightLoader& loader, const ModelConfig& config) {
  // Rounding errors of the head's input go straight into the logits, and its rows are few.
  constexpr InputRounding kHeadInput = InputRounding::kTwoPlanes;
  Head head;
  HR_ASSIGN_OR_RETURN(head.embed_tokens,
                      loader.linear(-1,
                                    "embed_tokens",
                                    config.vocab_size,
                                    config.hidden_size,
                                    {.input = kHeadInput, .row_lookup = true}));
  if (loader.has(-1, "lm_head")) {
    HR_ASSIGN_OR_RETURN(
        head.lm_head,
        loader.linear(-1, "lm_head", config.vocab_size, config.hidden_size, {.input = kHeadInput}));
  }
  HR_ASSIGN_OR_RETURN(head.norm, loader.vector(-1, "norm", config.hidden_size));
  return head;
}

void embed(const Step& step, const Head& head, float scale) {
  step.backend.embed(*head.embed_tokens, step.token_ids, step.num_rows, scale, step.act.x);
}

void rope_table(const Step& step, const Rotary& rotary, const ModelConfig& config, float* cos_sin) {
  step.backend.rope_table({.positions = step.positions,
                           .num_rows = step.num_rows,
                           .inv_freq = rotary.inv_freq.data(),
                           .rotary_dim = config.rotary_dim},
                          cos_sin);
}

void attend(const Step& step,
            const Attention& attention,
            const ModelConfig& config,
            int layer_idx,
            const Vector& norm,
            const AttentionStyle& style) {
  const Activations& act = step.act;
  const int group_idx = step.kv.layout().group_of_layer[static_cast<std::size_t>(layer_idx)];
  const KvLayer kv = step.kv.layer(layer_idx);
  const std::array<LinearOutput, 3> outputs = {
      {{.weight = attention.q_proj.get(), .out = act.q, .bias = attention.q_bias.data()},
       {.weight = attention.k_proj.get(), .out = act.k, .bias = attention.k_bias.data()},
       {.weight = attention.v_proj.get(), .out = act.v, .bias = attention.v_bias.data()}}};
  step.backend.linear({.x = act.x,
                       .num_rows = step.num_rows,
                       .norm_weight = norm.data(),
                       .norm_eps = config.rms_norm_eps},
                      outputs);
  step.backend.rope_append({.q = act.q,
                            .k = act.k,
                            .v = act.v,
                            .num_rows = step.num_rows,
                            .num_heads = config.num_heads,
                            .cos_sin = style.cos_sin,
                            .rotary_dim = config.rotary_dim,
                            .style = style.rope,
                            .q_norm = attention.q_norm.data(),
                            .k_norm = attention.k_norm.data(),
                            .norm_eps = config.rms_norm_eps,
                            .slots = step.slots[group_idx],
                            .kv = kv});
  step.backend.attention({.q = act.q,
                          .out = act.attention,
                          .num_heads = config.num_heads,
                          .group_idx = group_idx,
                          .scale = config.attention_scale,
                          .kv = kv});
}

void gate_up(const Step& step,
             const Mlp& mlp,
             const ModelConfig& config,
             const Vector& norm,
             Activation activation) {
  step.backend.gated_linear({.x = step.act.x,
                             .num_rows = step.num_rows,
                             .norm_weight = norm.data(),
                             .norm_eps = config.rms_norm_eps},
                            *mlp.gate_proj,
                            *mlp.up_proj,
                            activation,
                            step.act.mlp);
}

void project_into_x(const Step& step, const Weight& weight, const float* input) {
  const std::array<LinearOutput, 1> out = {
      {{.weight = &weight, .out = step.act.x, .add_to_out = true}}};
  step.backend.linear({.x = input, .num_rows = step.num_rows}, out);
}

void project_into_y(const Step& step, const Weight& weight, const float* input) {
  const std::array<LinearOutput, 1> out = {{{.weight = &weight, .out = step.act.y}}};
  step.backend.linear({.x = input, .num_rows = step.num_rows}, out);
}

void add_norm_of_y(const Step& step, const Vector& norm, const ModelConfig& config) {
  step.backend.rms_norm(step.act.y,
                        norm.data(),
                        config.rms_norm_eps,
                        step.num_rows,
                        config.hidden_size,
                        true,
                        step.act.x);
}

void logits(const Step& step, const Head& head, const ModelConfig& config) {
  if (step.num_logit_rows == 0) {
    return;
  }
  step.backend.gather_rows(
      step.act.x, step.logit_rows, step.num_logit_rows, config.hidden_size, step.act.last);
  const std::array<LinearOutput, 1> out = {{{.weight = &head.output(), .out = step.act.logits}}};
  step.backend.linear({.x = step.act.last,
                       .num_rows = step.num_logit_rows,
                       .norm_weight = head.norm.data(),
                       .norm_eps = config.rms_norm_eps},
                      out);
}

}  // namespace headrace
