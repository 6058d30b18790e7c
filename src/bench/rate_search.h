// Finds the highest rate that holds an objective: doubles (or halves) until it is passed, then
// narrows the interval. A decision is a value: the search tells the next rate to try.
#pragma once

#include <optional>
#include <vector>

namespace headrace {

struct RateTrial {
  double rate = 0;
  bool held = false;
};

class RateSearch {
 public:
  // Ends when the highest held and the lowest missed rate are within `ratio` of each other, or
  // after max_trials. start > 0, ratio > 1.
  RateSearch(double start, double ratio, int max_trials);

  std::optional<double> next() const;  // none: done
  void note(RateTrial trial);
  double max_rate() const { return held_; }  // 0: none held
  const std::vector<RateTrial>& tried() const { return tried_; }

 private:
  double start_;
  double ratio_;
  int max_trials_;
  double held_ = 0;    // highest that held
  double missed_ = 0;  // lowest that did not; 0: none yet
  std::vector<RateTrial> tried_{};
};

}  // namespace headrace
