#include "model/architectures.h"
#include "model/pre_norm_decoder.h"

namespace headrace {

Result<ModelConfig> read_qwen2_config(const GgufFile& file) { return read_common_config(file); }

// Llama's form with biases on q_proj, k_proj and v_proj.
Result<std::unique_ptr<Model>> load_qwen2(const GgufFile& file,
                                          const ModelConfig& config,
                                          Backend& backend,
                                          const LoadProgress& progress) {
  return load_pre_norm_decoder(file,
                               config,
                               {.attention = {.bias = Has::kYes}, .rope = RopeStyle::kHalves},
                               backend,
                               progress);
}

}  // namespace headrace
