#include "cost/step_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace {
namespace {

constexpr double kForget = 0.995;
constexpr double kPrior = 1e4;  // how little the first weights (0) are trusted
constexpr double kMostInverse =
    1e6;                           // no forgetting beyond it: features that do not come keep theirs
constexpr double kOutlier = 4;     // times the prediction: what a stalled machine adds is cut there
constexpr double kKeyUnit = 1e-4;  // features of about the same size

}  // namespace

StepCostModel::Vector StepCostModel::features(const StepShape& shape) {
  return {1,
          static_cast<double>(shape.num_decode_rows),
          static_cast<double>(shape.num_prefill_rows),
          shape.num_keys * kKeyUnit};
}

double StepCostModel::seconds(const Vector& x) const {
  return std::max(0.0, std::inner_product(x.begin(), x.end(), weights_.begin(), 0.0));
}

void StepCostModel::observe(const StepShape& shape, Duration took) {
  if (num_observed_ == 0) {
    for (std::size_t i = 0; i < kSize; ++i) {
      inverse_[i][i] = kPrior;
    }
  }
  const Vector x = features(shape);
  const double expected = seconds(x);
  double measured = to_seconds(took);
  if (ready() && expected > 0) {
    measured = std::min(measured, kOutlier * expected);
  }
  Vector px{};
  for (std::size_t i = 0; i < kSize; ++i) {
    px[i] = std::inner_product(x.begin(), x.end(), inverse_[i].begin(), 0.0);
  }
  double trace = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    trace += inverse_[i][i];
  }
  const double forget = trace < kMostInverse ? kForget : 1;
  const double scale = forget + std::inner_product(x.begin(), x.end(), px.begin(), 0.0);
  const double error = measured - std::inner_product(x.begin(), x.end(), weights_.begin(), 0.0);
  if (!(scale > 0) || !std::isfinite(error)) {
    *this = StepCostModel{};  // rounding has eaten the correlation: it learns anew
    return;
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    weights_[i] += px[i] / scale * error;
    for (std::size_t j = 0; j < kSize; ++j) {
      inverse_[i][j] = (inverse_[i][j] - px[i] * px[j] / scale) / forget;
    }
  }
  ++num_observed_;
}

Duration StepCostModel::predict(const StepShape& shape) const {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds(features(shape))));
}

int StepCostModel::prefill_rows_within(const StepShape& without,
                                       double keys_each,
                                       Duration limit,
                                       int most) const {
  int fits = 0;
  int too_many = most + 1;
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    StepShape with = without;
    with.num_prefill_rows += middle;
    with.num_keys += keys_each * middle;
    (predict(with) <= limit ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace headrace
