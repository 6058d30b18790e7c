#include "bench/machine_limits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

namespace headrace {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kKiB = 1024;
// The next level takes three times as long and more; a cache nearly full of lines in random order
// misses some.
constexpr double kSlower = 2.2;

// Seconds a load, in a cycle over all lines of a buffer in random order: the least of several laps.
double load_seconds(std::uint32_t* memory, std::size_t bytes) {
  constexpr std::size_t kStride = kLine / sizeof(std::uint32_t);
  const std::size_t num_lines = bytes / kLine;
  std::vector<std::uint32_t> order(num_lines);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = num_lines - 1; i > 0; --i) {  // Sattolo: one cycle through all
    const auto j = static_cast<std::size_t>(uniform(7, i, 0) * static_cast<float>(i));
    std::swap(order[i], order[std::min(j, i - 1)]);
  }
  for (std::size_t i = 0; i < num_lines; ++i) {
    memory[i * kStride] = order[i] * static_cast<std::uint32_t>(kStride);
  }
  const SteadyClock clock;
  double best = 1;
  std::uint32_t at = 0;
  constexpr int kLaps = 16;
  for (int lap = 0; lap < kLaps; ++lap) {
    const TimePoint start = clock.now();
    for (std::size_t i = 0; i < num_lines; ++i) {
      at = memory[at];
    }
    best = std::min(best, to_seconds(clock.now() - start) / static_cast<double>(num_lines));
  }
  memory[1] = at;  // kept, so that the loads are
  return best;
}

}  // namespace

MachineLimits measure_limits(MachineProbe& probe, std::size_t read_bytes) {
  return {.int8_ops_per_s = probe.int8_ops_per_s(),
          .f32_flop_per_s = probe.f32_flop_per_s(),
          .read_bytes_per_s = probe.read_bytes_per_s(read_bytes)};
}

double median(std::vector<double> values) {
  HR_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double median_share(std::span<const double> rates, std::span<const double> limits) {
  HR_CHECK(!rates.empty() && limits.size() == rates.size() + 1);
  std::vector<double> shares;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    shares.push_back(rates[i] / std::max(limits[i], limits[i + 1]));
  }
  return median(std::move(shares));
}

Result<double> share_of_limit(std::span<const double> rates,
                              std::span<const double> limits,
                              std::string_view what) {
  const double share = median_share(rates, limits);
  if (!(share <= 1)) {
    return make_error(ErrorCode::kInternal,
                      "the model reached {:.2f} of the {} that was measured beside it: the probe "
                      "was disturbed; run "
                      "it again on a quiet machine",
                      share,
                      what);
  }
  return share;
}

std::size_t last_level_cache_bytes() {
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const auto bytes = ::sysconf(name); bytes > 0) {
      return static_cast<std::size_t>(bytes);
    }
  }
  return 0;
}

std::size_t l2_from_latencies(std::span<const LatencyPoint> points) {
  HR_CHECK(!points.empty());
  std::size_t largest = points.front().bytes;
  for (const LatencyPoint& point : points) {
    if (point.seconds > points.front().seconds * kSlower) {
      break;
    }
    largest = point.bytes;
  }
  return largest;
}

std::size_t measure_l2_bytes() {
  constexpr std::array<std::size_t, 9> kSizes = {
      256, 512, 1024, 1280, 2048, 3072, 4096, 6144, 8192};
  // In huge pages, where the system has them: small ones fall on some sets of the cache more often
  // than on others.
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kHugePage, kSizes.back() * kKiB), std::free);
  HR_CHECK(memory != nullptr);
  ::madvise(memory.get(), kSizes.back() * kKiB, MADV_HUGEPAGE);
  std::vector<LatencyPoint> points;
  for (const std::size_t size : kSizes) {
    // A little less than the cache, which holds other things too.
    points.push_back({size * kKiB,
                      load_seconds(static_cast<std::uint32_t*>(memory.get()),
                                   size * kKiB * 7 / 8 / kLine * kLine)});
    if (points.back().seconds > points.front().seconds * kSlower) {
      break;
    }
  }
  return l2_from_latencies(points);
}

}  // namespace headrace
