#include "bench/rate_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace headrace {

RateSearch::RateSearch(double start, double ratio, int max_trials)
    : start_(start), ratio_(ratio), max_trials_(max_trials) {
  HR_CHECK(start > 0 && ratio > 1 && max_trials >= 1);
}

std::optional<double> RateSearch::next() const {
  if (static_cast<int>(tried_.size()) >= max_trials_) {
    return std::nullopt;
  }
  if (tried_.empty()) {
    return start_;
  }
  if (missed_ == 0) {
    return held_ * 2;
  }
  if (held_ == 0) {
    return missed_ / 2;
  }
  if (missed_ / held_ <= ratio_) {
    return std::nullopt;
  }
  return std::sqrt(held_ * missed_);
}

void RateSearch::note(RateTrial trial) {
  tried_.push_back(trial);
  if (trial.held) {
    held_ = std::max(held_, trial.rate);
  } else {
    missed_ = missed_ == 0 ? trial.rate : std::min(missed_, trial.rate);
  }
}

}  // namespace headrace
