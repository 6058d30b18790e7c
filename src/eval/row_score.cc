#include "eval/row_score.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace headrace {
namespace {

TokenId top_of(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

float at(std::span<const float> logits, TokenId id) { return logits[static_cast<std::size_t>(id)]; }

RowScore score(std::span<const float> logits, TokenId top, double log_sum, TokenId target) {
  const double above =
      static_cast<double>(at(logits, top)) - static_cast<double>(at(logits, target));
  return {.nll = log_sum + above, .top = top};
}

}  // namespace

RowScore score_row(std::span<const float> logits, TokenId target) {
  HR_CHECK(target >= 0 && static_cast<std::size_t>(target) < logits.size());
  const TokenId top = top_of(logits);
  const float largest = at(logits, top);
  double sum = 0;
  for (const float logit : logits) {
    sum += static_cast<double>(std::exp(logit - largest));
  }
  return score(logits, top, std::log(sum), target);
}

// With p_i = e_i / sum(e): KL = sum(p_i (a_i - b_i)) - (log Z_a - log Z_b), in one pass over both
// rows. Each row is taken from its largest logit, so that the difference of the sums is small.
RowComparison compare_rows(std::span<const float> model,
                           std::span<const float> reference,
                           TokenId target) {
  HR_CHECK(model.size() == reference.size());
  HR_CHECK(target >= 0 && static_cast<std::size_t>(target) < model.size());
  const TokenId model_top = top_of(model);
  const TokenId reference_top = top_of(reference);
  const float model_max = at(model, model_top);
  const float reference_max = at(reference, reference_top);
  double model_sum = 0;
  double reference_sum = 0;
  double weighted = 0;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const float a = reference[i] - reference_max;
    const float b = model[i] - model_max;
    const auto e = static_cast<double>(std::exp(a));
    reference_sum += e;
    model_sum += static_cast<double>(std::exp(b));
    weighted += e * (static_cast<double>(a) - static_cast<double>(b));
  }
  const double model_log_sum = std::log(model_sum);
  const double reference_log_sum = std::log(reference_sum);
  const double kl = weighted / reference_sum - (reference_log_sum - model_log_sum);
  return {.model = score(model, model_top, model_log_sum, target),
          .reference = score(reference, reference_top, reference_log_sum, target),
          .kl = kl < 0 ? 0 : kl};  // a rounding error below 0; NaN stays
}

}  // namespace headrace
