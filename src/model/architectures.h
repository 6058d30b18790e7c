// What each architecture offers to the registry: its configuration from a file, and its weights.
#pragma once

#include <memory>

#include "model/model.h"

namespace headrace {

// Llama, Mistral without a window, SmolLM2.
Result<ModelConfig> read_llama_config(const GgufFile& file);
Result<std::unique_ptr<Model>> load_llama(const GgufFile& file,
                                          const ModelConfig& config,
                                          Backend& backend,
                                          const LoadProgress& progress);

// Qwen2 and Qwen2.5.
Result<ModelConfig> read_qwen2_config(const GgufFile& file);
Result<std::unique_ptr<Model>> load_qwen2(const GgufFile& file,
                                          const ModelConfig& config,
                                          Backend& backend,
                                          const LoadProgress& progress);

// Gemma 3, text.
Result<ModelConfig> read_gemma3_config(const GgufFile& file);
Result<std::unique_ptr<Model>> load_gemma3(const GgufFile& file,
                                           const ModelConfig& config,
                                           Backend& backend,
                                           const LoadProgress& progress);

}  // namespace headrace
