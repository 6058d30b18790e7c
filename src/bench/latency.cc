#include "bench/latency.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace headrace {
namespace {

double nearest_rank(const std::vector<double>& sorted, double quantile) {
  if (sorted.empty()) {
    return 0;
  }
  // A hair less, so that 0.9 of 10 is the ninth.
  const double rank = std::ceil(quantile * static_cast<double>(sorted.size()) - 1e-9);
  const auto idx = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return sorted[std::min(idx, sorted.size() - 1)];
}

std::optional<SloTarget> parse_target(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::size_t bar = name.find('_');
  if (equals == std::string_view::npos || bar == std::string_view::npos) {
    return std::nullopt;
  }
  SloTarget target{.name = std::string(name), .measure = std::string(name.substr(0, bar))};
  constexpr std::array<std::pair<std::string_view, double>, 4> kQuantiles = {
      {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}};
  for (const auto& [known, quantile] : kQuantiles) {
    if (name.substr(bar + 1) == known) {
      target.quantile = quantile;
    }
  }
  const std::string_view limit = text.substr(equals + 1);
  const auto [stop, error] =
      std::from_chars(limit.data(), limit.data() + limit.size(), target.limit_ms);
  const bool is_measure =
      target.measure == "ttft" || target.measure == "itl" || target.measure == "e2e";
  if (error != std::errc{} || stop != limit.data() + limit.size() || !(target.limit_ms > 0) ||
      !std::isfinite(target.limit_ms) || target.quantile == 0 || !is_measure) {
    return std::nullopt;
  }
  return target;
}

}  // namespace

double percentile(std::vector<double> values, double quantile) {
  std::ranges::sort(values);
  return nearest_rank(values, quantile);
}

Percentiles percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  return {nearest_rank(values, 0.5), nearest_rank(values, 0.9), nearest_rank(values, 0.99)};
}

Result<std::vector<SloTarget>> parse_slo(std::string_view text) {
  std::vector<SloTarget> targets;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    std::optional<SloTarget> target = parse_target(rest.substr(0, comma));
    const bool twice =
        target && std::ranges::find(targets, target->name, &SloTarget::name) != targets.end();
    if (!target || twice) {
      return make_error(ErrorCode::kInvalidArgument,
                        "slo '{}': give ttft, itl or e2e with p50, p90, p95 or p99 and its "
                        "milliseconds, as ttft_p99=2000,itl_p99=150",
                        text);
    }
    targets.push_back(*std::move(target));
    if (comma == std::string_view::npos) {
      return targets;
    }
    rest.remove_prefix(comma + 1);
  }
}

double attainment(const std::vector<double>& values, double limit_ms) {
  if (values.empty()) {
    return 1;
  }
  const auto within =
      std::ranges::count_if(values, [limit_ms](double value) { return value <= limit_ms; });
  return static_cast<double>(within) / static_cast<double>(values.size());
}

}  // namespace headrace
