#include "model/architectures.h"
#include "model/pre_norm_decoder.h"

namespace headrace {

Result<ModelConfig> read_llama_config(const GgufFile& file) { return read_common_config(file); }

// GGUF files of Llama hold q_proj and k_proj with the rows of a head reordered, so that rotation
// pairs are neighbours.
Result<std::unique_ptr<Model>> load_llama(const GgufFile& file,
                                          const ModelConfig& config,
                                          Backend& backend,
                                          const LoadProgress& progress) {
  return load_pre_norm_decoder(
      file, config, {.attention = {}, .rope = RopeStyle::kInterleaved}, backend, progress);
}

}  // namespace headrace
