// The parts that the architectures share. Shapes as in glossary: R rows, H hidden, D head_dim, I
// intermediate.
#pragma once

#include <memory>

#include "model/model.h"
#include "model/weights.h"

namespace headrace {

struct Attention {
  std::unique_ptr<Weight> q_proj;  // [num_heads * D, H]
  std::unique_ptr<Weight> k_proj;  // [num_kv_heads * D, H]
  std::unique_ptr<Weight> v_proj;  // [num_kv_heads * D, H]
  std::unique_ptr<Weight> o_proj;  // [H, num_heads * D]
  Vector q_bias, k_bias, v_bias;   // empty where the model has none
  Vector q_norm, k_norm;           // [D], empty where the model has none
};

struct Mlp {
  std::unique_ptr<Weight> gate_proj;  // [I, H]
  std::unique_ptr<Weight> up_proj;    // [I, H]
  std::unique_ptr<Weight> down_proj;  // [H, I]
};

// The rotary frequencies of one setting, 1 / theta^(2i/rotary_dim), over the file's factors where
// it has them.
struct Rotary {
  Vector inv_freq;  // [rotary_dim / 2]
};

// The embedding and the output head, which may be one matrix.
struct Head {
  std::unique_ptr<Weight> embed_tokens;  // [V, H]
  std::unique_ptr<Weight> lm_head;       // [V, H], null where it is the embedding
  Vector norm;                           // [H]
  const Weight& output() const { return lm_head ? *lm_head : *embed_tokens; }
};

enum class Has : bool { kNo, kYes };
struct AttentionTraits {
  Has bias = Has::kNo;
  Has qk_norm = Has::kNo;
};

Result<Attention> load_attention(WeightLoader& loader,
                                 const ModelConfig& config,
                                 int layer_idx,
                                 AttentionTraits traits);
Result<Mlp> load_mlp(WeightLoader& loader, const ModelConfig& config, int layer_idx);
Result<Rotary> make_rotary(WeightLoader& loader, const ModelConfig& config, const RopeConfig& rope);
Result<Head> load_head(WeightLoader& loader, const ModelConfig& config);

// x = embedding of the step's tokens, times scale.
void embed(const Step& step, const Head& head, float scale);
void rope_table(const Step& step, const Rotary& rotary, const ModelConfig& config, float* cos_sin);

struct AttentionStyle {
  RopeStyle rope = RopeStyle::kHalves;
  const float* cos_sin = nullptr;  // [R, rotary_dim]
};
// act.attention = the heads' outputs for norm(x); K and V are appended.
void attend(const Step& step,
            const Attention& attention,
            const ModelConfig& config,
            int layer_idx,
            const Vector& norm,
            const AttentionStyle& style);
// act.mlp = activation(gate(norm(x))) * up(norm(x)).
void gate_up(const Step& step,
             const Mlp& mlp,
             const ModelConfig& config,
             const Vector& norm,
             Activation activation);

// A row-parallel product: x += product, or y = product where a norm comes between.
void project_into_x(const Step& step, const Weight& weight, const float* input);
void project_into_y(const Step& step, const Weight& weight, const float* input);
// x += norm(y).
void add_norm_of_y(const Step& step, const Vector& norm, const ModelConfig& config);

// act.logits of the rows asked for.
void logits(const Step& step, const Head& head, const ModelConfig& config);

}  // namespace headrace
