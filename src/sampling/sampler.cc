#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace headrace {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Candidates sorted at first.
constexpr std::size_t kFirstSorted = 256;

float readable(float logit) {
  if (std::isnan(logit)) {
    return kForbidden;
  }
  return logit;
}

bool has_penalties(const SamplingParams& p) {
  return p.repetition_penalty != 1.0F || p.frequency_penalty != 0.0F || p.presence_penalty != 0.0F;
}

TokenId argmax(std::span<const float> logits) {
  TokenId best = 0;
  float best_logit = kForbidden;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best_logit) {  // false for NaN
      best = static_cast<TokenId>(i);
      best_logit = logits[i];
    }
  }
  return best;
}

}  // namespace

void Sampler::adjust(const Input& input, const SamplingParams& params) {
  logits_.resize(input.logits.size());
  std::transform(input.logits.begin(), input.logits.end(), logits_.begin(), readable);
  for (const LogitBias& bias : params.logit_bias) {
    logits_[static_cast<std::size_t>(bias.token)] += bias.bias;
  }
  if (has_penalties(params)) {
    penalize(input, params);
  }
  for (const TokenId token : input.forbidden) {
    logits_[static_cast<std::size_t>(token)] = kForbidden;
  }
}

void Sampler::penalize(const Input& input, const SamplingParams& params) {
  history_.assign(input.output.begin(), input.output.end());
  std::sort(history_.begin(), history_.end());
  for (std::size_t i = 0; i < history_.size();) {
    std::size_t end = i;
    while (end < history_.size() && history_[end] == history_[i]) {
      ++end;
    }
    const auto count = static_cast<float>(end - i);
    logits_[static_cast<std::size_t>(history_[i])] -=
        params.frequency_penalty * count + params.presence_penalty;
    i = end;
  }
  if (params.repetition_penalty == 1.0F) {
    return;
  }
  history_.insert(history_.end(), input.prompt.begin(), input.prompt.end());
  std::sort(history_.begin(), history_.end());
  history_.erase(std::unique(history_.begin(), history_.end()), history_.end());
  for (const TokenId token : history_) {
    float& logit = logits_[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
}

// The candidates that are possible at all, or the top_k best of them.
void Sampler::collect(int top_k) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] > kForbidden) {
      candidates_.push_back({static_cast<TokenId>(i), logits_[i], 0});
    }
  }
  const auto k = static_cast<std::size_t>(top_k);
  if (k > 0 && k < candidates_.size()) {
    sort_first(k);
    candidates_.resize(k);
  }
}

void Sampler::sort_first(std::size_t n) {
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(n);
  if (end != candidates_.end()) {
    std::nth_element(candidates_.begin(), end, candidates_.end(), better);
  }
  std::sort(candidates_.begin(), end, better);
}

TokenId Sampler::choose(const SamplingParams& params, std::uint64_t position) {
  collect(params.top_k);
  if (candidates_.empty()) {
    return argmax(logits_);
  }
  softmax(candidates_, params.temperature);
  if (params.typical_p < 1.0F) {
    sort_first(candidates_.size());
    keep_typical(candidates_, params.typical_p);
  }
  const bool filtered = params.top_p < 1.0F || params.min_p > 0.0F;
  const double u = static_cast<double>(uniform(params.seed, position, 0));
  // Sorting a vocabulary costs more than a forward pass of a small model; a draw rarely looks past
  // the first hundreds.
  for (std::size_t n = std::min(kFirstSorted, candidates_.size());;
       n = std::min(n * 16, candidates_.size())) {
    sort_first(n);
    const std::span<const Candidate> sorted(candidates_.data(), n);
    const std::size_t kept = filtered ? count_kept(sorted, params.top_p, params.min_p) : n;
    if (filtered && kept == n && n < candidates_.size()) {
      continue;  // the cut lies further down
    }
    double mass = 1;
    if (filtered) {
      mass = 0;
      for (const Candidate& c : sorted.first(kept)) {
        mass += c.probability;
      }
    }
    double sum = 0;
    for (const Candidate& c : sorted.first(kept)) {
      sum += c.probability;
      if (u * mass < sum) {
        return c.token;
      }
    }
    if (filtered || n == candidates_.size()) {
      return sorted[kept - 1].token;
    }
  }
}

SampledToken Sampler::sample(const Input& input, const SamplingParams& params) {
  HR_CHECK(!input.logits.empty());
  SampledToken result;
  const bool plain = params.logit_bias.empty() && input.forbidden.empty() && !has_penalties(params);
  if (plain && params.temperature == 0.0F) {
    result.token = argmax(input.logits);
  } else {
    adjust(input, params);
    result.token = params.temperature == 0.0F ? argmax(logits_) : choose(params, input.position);
  }
  if (params.num_top_logprobs >= 0) {
    result = score(input.logits, result.token, params.num_top_logprobs);
  }
  return result;
}

Status check_logits(std::span<const float> logits) {
  constexpr float kMax = std::numeric_limits<float>::max();
  bool all_below = true;
  bool any_finite = false;
  for (const float logit : logits) {
    all_below &= logit <= kMax;  // false for NaN
    any_finite |= logit >= -kMax;
  }
  if (all_below && any_finite) {
    return {};
  }
  return make_error(ErrorCode::kInternal,
                    "the model's logits are not numbers: {}; the model file may be damaged",
                    all_below ? "all are negative infinity" : "there is a NaN or an infinity");
}

SampledToken score(std::span<const float> logits, TokenId token, int num_top) {
  HR_CHECK(token >= 0 && static_cast<std::size_t>(token) < logits.size());
  const float best = readable(logits[static_cast<std::size_t>(argmax(logits))]);
  double sum = 0;
  for (const float logit : logits) {
    sum += static_cast<double>(std::exp(readable(logit) - best));
  }
  const double log_sum = std::log(sum) + static_cast<double>(best);
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(static_cast<double>(readable(logits[static_cast<std::size_t>(id)])) -
                              log_sum);
  };
  SampledToken result{.token = token, .logprob = logprob(token), .top = {}};
  const auto n = std::min(static_cast<std::size_t>(std::max(num_top, 0)), logits.size());
  std::vector<TokenId> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<TokenId>(i);
  }
  std::partial_sort(ids.begin(),
                    ids.begin() + static_cast<std::ptrdiff_t>(n),
                    ids.end(),
                    [&](TokenId a, TokenId b) {
                      const float la = readable(logits[static_cast<std::size_t>(a)]);
                      const float lb = readable(logits[static_cast<std::size_t>(b)]);
                      return la > lb || (la == lb && a < b);
                    });
  for (std::size_t i = 0; i < n; ++i) {
    result.top.push_back({ids[i], logprob(ids[i])});
  }
  return result;
}

}  // namespace headrace
