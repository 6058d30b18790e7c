// Picks a token from a row of logits. Pure: the same logits, history, parameters and position give
// the same token on every thread and in every batch. Order everywhere: higher logit first, then
// lower id. Noise is a function of (seed, position) alone (base/random.h), so speculation and other
// devices draw the same tokens.
//
// Steps: logit bias, penalties, forbidden tokens -> greedy if temperature is 0 -> temperature ->
// top-k -> typical-p -> top-p -> min-p -> draw. Log-probabilities are of the raw logits before any
// of that, as OpenAI's are. Sources: top-p: Holtzman et al. 2019; typical: Meister et al. 2022;
// min-p: Nguyen et al. 2024; repetition penalty: Keskar et al. 2019.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sampling/filters.h"
#include "sampling/params.h"

namespace headrace {

struct TokenLogprob {
  TokenId token;
  float logprob;
};

struct SampledToken {
  TokenId token = -1;
  float logprob = 0;              // valid where log-probabilities were asked for
  std::vector<TokenLogprob> top;  // the n best, best first
};

// Scratch is reused between calls: one Sampler per thread.
class Sampler {
 public:
  struct Input {
    std::span<const float> logits;  // [V]; as check_logits() wants them, else a NaN counts as -inf
    std::span<const TokenId> prompt;     // for the repetition penalty
    std::span<const TokenId> output;     // generated so far
    std::span<const TokenId> forbidden;  // e.g. end tokens before min_tokens are reached
    std::uint64_t position = 0;  // of the token to be chosen in the sequence: the noise's counter
  };
  SampledToken sample(const Input& input, const SamplingParams& params);

 private:
  void adjust(const Input& input, const SamplingParams& params);
  void penalize(const Input& input, const SamplingParams& params);
  void collect(int top_k);
  void sort_first(std::size_t n);
  TokenId choose(const SamplingParams& params, std::uint64_t position);

  std::vector<float> logits_;
  std::vector<Candidate> candidates_;
  std::vector<TokenId> history_;
};

// kInternal where no choice can be made in earnest: a logit is NaN or positive infinity, or all are
// negative infinity. One pass.
Status check_logits(std::span<const float> logits);

// log softmax of one token of a row, and the n best: what scoring a prompt needs.
SampledToken score(std::span<const float> logits, TokenId token, int num_top);

}  // namespace headrace
