// The form of Llama and its many relatives: a norm before each part, rotary attention, SiLU-gated
// MLP. What differs between them is stated in DecoderTraits; an architecture whose layer reads
// differently has its own file.
#pragma once

#include <memory>

#include "model/layers.h"
#include "model/model.h"

namespace headrace {

struct DecoderTraits {
  AttentionTraits attention;
  RopeStyle rope = RopeStyle::kHalves;
};

Result<std::unique_ptr<Model>> load_pre_norm_decoder(const GgufFile& file,
                                                     const ModelConfig& config,
                                                     const DecoderTraits& traits,
                                                     Backend& backend,
                                                     const LoadProgress& progress);

}  // namespace headrace
