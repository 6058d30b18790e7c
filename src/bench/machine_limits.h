// The machine's limits beside which a benchmark puts its figures, and how a share of one is taken.
// Limits are measured between the runs they are for, because a virtual machine's speed drifts: a
// run is held against the better of the two measurements around it, and the median of these shares
// counts. Pure functions; the probe is one thread's.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/probe.h"

namespace headrace {

struct MachineLimits {
  double int8_ops_per_s = 0;  // a multiply-add is two
  double f32_flop_per_s = 0;
  double read_bytes_per_s = 0;
};

// Now. The probe has memory for read_bytes.
MachineLimits measure_limits(MachineProbe& probe, std::size_t read_bytes);

double median(std::vector<double> values);  // not empty

// Median share of `limits` that `rates` reach; limits[i] and limits[i + 1] were measured before and
// after rates[i].
double median_share(std::span<const double> rates, std::span<const double> limits);
// The same where more than 1 cannot be: then the probe was disturbed, and the whole run says
// nothing. `what` names the limit.
Result<double> share_of_limit(std::span<const double> rates,
                              std::span<const double> limits,
                              std::string_view what);

// The largest cache, as the system states it; 0 where it does not.
std::size_t last_level_cache_bytes();

// Size of a core's second-level cache: the largest buffer in which loads that wait for each other
// still take about as long as in a quarter of a megabyte, to the nearest usual size. Takes some
// tenths of a second.
std::size_t measure_l2_bytes();

// What measure_l2_bytes() concludes: sizes ascending, each with seconds a load.
struct LatencyPoint {
  std::size_t bytes = 0;
  double seconds = 0;
};
std::size_t l2_from_latencies(std::span<const LatencyPoint> points);

}  // namespace headrace
