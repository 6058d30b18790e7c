// What is said of many latencies: percentiles, and how well an objective was met. Milliseconds.
// Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

// By nearest rank; all 0 of none.
Percentiles percentiles(std::vector<double> values);
double percentile(std::vector<double> values, double quantile);

struct SloTarget {
  std::string name{};     // "ttft_p99"
  std::string measure{};  // "ttft", "itl" or "e2e"
  double quantile = 0;    // 0.99
  double limit_ms = 0;
};

// "ttft_p99=2000,itl_p99=150"; p50, p90, p95, p99. kInvalidArgument: anything else, or a name
// twice.
Result<std::vector<SloTarget>> parse_slo(std::string_view text);

// The share of values within the limit; 1 of none.
double attainment(const std::vector<double>& values, double limit_ms);

}  // namespace headrace
