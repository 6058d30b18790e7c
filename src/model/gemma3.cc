#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "model/architectures.h"
#include "model/layers.h"

namespace headrace {
namespace {

struct Gemma3Layer {
  Vector input_layernorm;  // [H]
  Attention self_attn;
  Vector post_attention_layernorm;  // [H], of the attention's output
  Vector pre_feedforward_layernorm;
  Mlp mlp;
  Vector post_feedforward_layernorm;
};

// Every sixth layer attends to everything, the five before it to a window and with a RoPE base of
// their own. Norms stand before and after each part; files hold the norms' gains with the 1 already
// added.
class Gemma3Model final : public Model {
 public:
  explicit Gemma3Model(ModelConfig config) : Model(std::move(config)) {}

  Status load(const GgufFile& file, Backend& backend, const LoadProgress& progress) {
    const ModelConfig& c = config();
    WeightLoader loader(file, backend);
    HR_ASSIGN_OR_RETURN(head_, load_head(loader, c));
    HR_ASSIGN_OR_RETURN(rotary_, make_rotary(loader, c, c.rope));
    HR_ASSIGN_OR_RETURN(rotary_local_, make_rotary(loader, c, c.rope_local));
    for (int i = 0; i < c.num_layers; ++i) {
      HR_ASSIGN_OR_RETURN(Gemma3Layer layer, load_layer(loader, i));
      layers_.push_back(std::move(layer));
      if (progress) {
        progress(i + 1, c.num_layers);
      }
    }
    return loader.check_all_used();
  }

  KvShape kv_shape() const override {
    KvShape shape{
        .num_kv_heads = config().num_kv_heads, .head_dim = config().head_dim, .layer_windows = {}};
    for (int i = 0; i < config().num_layers; ++i) {
      shape.layer_windows.push_back(is_local(i) ? config().sliding_window : 0);
    }
    return shape;
  }

  bool forward(const Step& step) const override {
    embed(step, head_, std::sqrt(static_cast<float>(config().hidden_size)));
    rope_table(step, rotary_, config(), step.act.cos_sin);
    rope_table(step, rotary_local_, config(), step.act.cos_sin_local);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (step.aborted()) {
        return false;
      }
      forward_layer(step, layers_[i], static_cast<int>(i));
    }
    logits(step, head_, config());
    return true;
  }

 private:
  bool is_local(int layer_idx) const {
    return config().sliding_window > 0 && (layer_idx + 1) % config().sliding_window_pattern != 0;
  }

  Result<Gemma3Layer> load_layer(WeightLoader& loader, int i) const {
    const ModelConfig& c = config();
    Gemma3Layer layer;
    HR_ASSIGN_OR_RETURN(layer.input_layernorm, loader.vector(i, "input_layernorm", c.hidden_size));
    HR_ASSIGN_OR_RETURN(layer.self_attn, load_attention(loader, c, i, {.qk_norm = Has::kYes}));
    HR_ASSIGN_OR_RETURN(layer.post_attention_layernorm,
                        loader.vector(i, "post_attention_norm", c.hidden_size));
    HR_ASSIGN_OR_RETURN(layer.pre_feedforward_layernorm,
                        loader.vector(i, "pre_feedforward_layernorm", c.hidden_size));
    HR_ASSIGN_OR_RETURN(layer.mlp, load_mlp(loader, c, i));
    HR_ASSIGN_OR_RETURN(layer.post_feedforward_layernorm,
                        loader.vector(i, "post_feedforward_layernorm", c.hidden_size));
    return layer;
  }

  void forward_layer(const Step& step, const Gemma3Layer& layer, int layer_idx) const {
    const AttentionStyle style{
        .rope = RopeStyle::kHalves,
        .cos_sin = is_local(layer_idx) ? step.act.cos_sin_local : step.act.cos_sin};
    attend(step, layer.self_attn, config(), layer_idx, layer.input_layernorm, style);
    project_into_y(step, *layer.self_attn.o_proj, step.act.attention);
    add_norm_of_y(step, layer.post_attention_layernorm, config());
    gate_up(step, layer.mlp, config(), layer.pre_feedforward_layernorm, Activation::kGeluTanh);
    project_into_y(step, *layer.mlp.down_proj, step.act.mlp);
    add_norm_of_y(step, layer.post_feedforward_layernorm, config());
  }

  Head head_;
  Rotary rotary_;        // of layers that attend to everything
  Rotary rotary_local_;  // of window layers
  std::vector<Gemma3Layer> layers_;
};

}  // namespace

Result<ModelConfig> read_gemma3_config(const GgufFile& file) {
  HR_ASSIGN_OR_RETURN(ModelConfig config, read_common_config(file));
  HR_ASSIGN_OR_RETURN(config.sliding_window,
                      read_int(file, config.architecture, "attention.sliding_window", 1, 1 << 24));
  config.sliding_window_pattern = 6;
  if (file.metadata().has("gemma3.attention.sliding_window_pattern")) {
    HR_ASSIGN_OR_RETURN(
        config.sliding_window_pattern,
        read_int(file, config.architecture, "attention.sliding_window_pattern", 1, 1024));
  }
  config.rope_local = {};
  HR_ASSIGN_OR_RETURN(config.rope_local.theta,
                      file.metadata().f32_or("gemma3.rope.freq_base_swa", 10000.0F));
  if (!(config.rope_local.theta > 0)) {
    return make_error(
        ErrorCode::kCorrupt, "{}: 'gemma3.rope.freq_base_swa' is not positive", file.name());
  }
  return config;
}

Result<std::unique_ptr<Model>> load_gemma3(const GgufFile& file,
                                           const ModelConfig& config,
                                           Backend& backend,
                                           const LoadProgress& progress) {
  auto model = std::make_unique<Gemma3Model>(config);
  HR_RETURN_IF_ERROR(model->load(file, backend, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace headrace
