// How long a step takes, fitted while the engine runs: a fixed part, a part for each decode and
// each prefill row, and a part for the keys that attention reads. Recursive least squares with slow
// forgetting, so that it follows a machine that becomes busy. A pure function of what was observed;
// one thread (the engine's).
//
// Source: Haykin, "Adaptive Filter Theory", ch. 10 (the exponentially weighted RLS algorithm).
#pragma once

#include <array>

#include "base/clock.h"

namespace headrace {

struct StepShape {
  int num_decode_rows = 0;
  int num_prefill_rows = 0;
  double num_keys = 0;  // that all rows see together
};

class StepCostModel {
 public:
  void observe(const StepShape& shape, Duration took);

  // Never negative. Before enough was observed it says nothing: ready() is false, and so are the
  // numbers.
  Duration predict(const StepShape& shape) const;
  bool ready() const { return num_observed_ >= kEnough; }

  // How many prefill rows can be added, each seeing num_keys keys, so that the step still ends
  // within the limit; 0 to most.
  int prefill_rows_within(const StepShape& without,
                          double keys_each,
                          Duration limit,
                          int most) const;

 private:
  static constexpr int kEnough = 16;
  static constexpr int kSize = 4;
  using Vector = std::array<double, kSize>;

  static Vector features(const StepShape& shape);
  double seconds(const Vector& x) const;

  Vector weights_{};
  std::array<Vector, kSize> inverse_{};  // of the features' correlation
  int num_observed_ = 0;
};

}  // namespace headrace
