// How the next token is chosen. Plain data, validated once by whoever makes it (validate()), then
// constant.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace headrace {

struct LogitBias {
  TokenId token;
  float bias;  // [-100, 100]
};

struct SamplingParams {
  float temperature = 1.0F;         // 0: greedy; [0, 2]... up to 100 is taken
  int top_k = 0;                    // 0: off
  float top_p = 1.0F;               // (0, 1]
  float min_p = 0.0F;               // [0, 1]
  float typical_p = 1.0F;           // (0, 1]
  float repetition_penalty = 1.0F;  // > 0, over prompt and output
  float frequency_penalty = 0.0F;   // [-2, 2], over output
  float presence_penalty = 0.0F;    // [-2, 2], over output
  std::vector<LogitBias> logit_bias;
  std::uint64_t seed = 0;
  int num_top_logprobs = -1;  // -1: no log-probabilities; n: the chosen token's and the n best
};

// The first field out of range, named as in the HTTP interface (Error::param).
Status validate(const SamplingParams& params, int vocab_size);

}  // namespace headrace
