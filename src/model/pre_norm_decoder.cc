#include "model/pre_norm_decoder.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace headrace {
namespace {

struct DecoderLayer {
  Vector input_layernorm;  // [H]
  Attention self_attn;
  Vector post_attention_layernorm;  // [H]
  Mlp mlp;
};

class Decoder final : public Model {
 public:
  Decoder(ModelConfig config, const DecoderTraits& traits)
      : Model(std::move(config)), traits_(traits) {}

  Status load(const GgufFile& file, Backend& backend, const LoadProgress& progress) {
    const ModelConfig& c = config();
    WeightLoader loader(file, backend);
    HR_ASSIGN_OR_RETURN(head_, load_head(loader, c));
    HR_ASSIGN_OR_RETURN(rotary_, make_rotary(loader, c, c.rope));
    for (int i = 0; i < c.num_layers; ++i) {
      DecoderLayer layer;
      HR_ASSIGN_OR_RETURN(layer.input_layernorm,
                          loader.vector(i, "input_layernorm", c.hidden_size));
      HR_ASSIGN_OR_RETURN(layer.self_attn, load_attention(loader, c, i, traits_.attention));
      HR_ASSIGN_OR_RETURN(layer.post_attention_layernorm,
                          loader.vector(i, "post_attention_layernorm", c.hidden_size));
      HR_ASSIGN_OR_RETURN(layer.mlp, load_mlp(loader, c, i));
      layers_.push_back(std::move(layer));
      if (progress) {
        progress(i + 1, c.num_layers);
      }
    }
    return loader.check_all_used();
  }

  KvShape kv_shape() const override {
    return {.num_kv_heads = config().num_kv_heads,
            .head_dim = config().head_dim,
            .layer_windows = std::vector<int>(layers_.size(), 0)};
  }

  bool forward(const Step& step) const override {
    embed(step, head_, 1.0F);
    rope_table(step, rotary_, config(), step.act.cos_sin);
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
  void forward_layer(const Step& step, const DecoderLayer& layer, int layer_idx) const {
    const AttentionStyle style{.rope = traits_.rope, .cos_sin = step.act.cos_sin};
    attend(step, layer.self_attn, config(), layer_idx, layer.input_layernorm, style);
    project_into_x(step, *layer.self_attn.o_proj, step.act.attention);
    gate_up(step, layer.mlp, config(), layer.post_attention_layernorm, Activation::kSilu);
    project_into_x(step, *layer.mlp.down_proj, step.act.mlp);
  }

  DecoderTraits traits_;
  Head head_;
  Rotary rotary_;
  std::vector<DecoderLayer> layers_;
};

}  // namespace

Result<std::unique_ptr<Model>> load_pre_norm_decoder(const GgufFile& file,
                                                     const ModelConfig& config,
                                                     const DecoderTraits& traits,
                                                     Backend& backend,
                                                     const LoadProgress& progress) {
  auto model = std::make_unique<Decoder>(config, traits);
  HR_RETURN_IF_ERROR(model->load(file, backend, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace headrace
