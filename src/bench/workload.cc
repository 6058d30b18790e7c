#include "bench/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/random.h"

namespace headrace {
namespace {

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

bool is_length(double value) { return value >= 1 && value <= 1 << 20; }

// Without its ",max=N".
std::optional<LengthDistribution> parse_shape(std::string_view text) {
  using Kind = LengthDistribution::Kind;
  if (const auto fixed = to_number(text); fixed && is_length(*fixed)) {
    return LengthDistribution{.kind = Kind::kFixed, .low = std::floor(*fixed)};
  }
  const std::vector<std::string_view> named = split(text, ':');
  if (named.size() == 3 && named[0] == "lognormal") {
    const auto median = to_number(named[1]);
    const auto sigma = to_number(named[2]);
    if (median && sigma && is_length(*median) && *sigma >= 0 && *sigma <= 5) {
      return LengthDistribution{.kind = Kind::kLogNormal, .low = *median, .high = *sigma};
    }
    return std::nullopt;
  }
  const std::vector<std::string_view> ends = split(text, '-');
  if (ends.size() == 2) {
    const auto low = to_number(ends[0]);
    const auto high = to_number(ends[1]);
    if (low && high && is_length(*low) && is_length(*high) && *low <= *high) {
      return LengthDistribution{
          .kind = Kind::kUniform, .low = std::floor(*low), .high = std::floor(*high)};
    }
  }
  return std::nullopt;
}

}  // namespace

int LengthDistribution::sample(double u1, double u2) const {
  double value = low;
  switch (kind) {
    case Kind::kFixed:
      break;
    case Kind::kUniform:
      value = low + std::floor(u1 * (high - low + 1));
      break;
    case Kind::kLogNormal: {
      // Box and Muller.
      const double normal = std::sqrt(-2 * std::log(1 - u1)) * std::cos(2 * std::numbers::pi * u2);
      value = std::round(low * std::exp(high * normal));
      break;
    }
  }
  return static_cast<int>(std::clamp(value, 1.0, static_cast<double>(most)));
}

Result<LengthDistribution> parse_lengths(std::string_view text) {
  constexpr std::string_view kMax = ",max=";
  const std::size_t at = text.find(kMax);
  std::optional<LengthDistribution> shape = parse_shape(trimmed(text.substr(0, at)));
  if (shape && at != std::string_view::npos) {
    const auto most = to_number(trimmed(text.substr(at + kMax.size())));
    if (most && is_length(*most)) {
      shape->most = static_cast<int>(*most);
    } else {
      shape.reset();
    }
  }
  if (!shape) {
    return make_error(ErrorCode::kInvalidArgument,
                      "lengths '{}': give a number, LOW-HIGH or lognormal:MEDIAN:SIGMA, and if "
                      "wanted ,max=N",
                      text);
  }
  return *shape;
}

std::vector<LoadRequest> make_workload(const WorkloadSpec& spec) {
  std::vector<LoadRequest> requests;
  double at_s = 0;
  for (int i = 0; i < spec.num_requests; ++i) {
    const auto draw = [&spec, i](std::uint32_t k) {
      return static_cast<double>(uniform(spec.seed, static_cast<std::uint64_t>(i), k));
    };
    if (spec.rate > 0) {
      at_s += -std::log(1 - draw(0)) / spec.rate;
    }
    requests.push_back(
        {at_s, spec.prompt.sample(draw(1), draw(2)), spec.output.sample(draw(3), draw(4))});
  }
  return requests;
}

Result<std::vector<LoadRequest>> parse_trace(std::string_view text, std::string_view name) {
  std::vector<LoadRequest> requests;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::vector<std::string_view> fields = split(line, ',');
    const double at_s = to_number(fields[0]).value_or(-1);
    if (at_s < 0 && number == 1 && !to_number(fields[0])) {
      continue;
    }
    const bool complete = fields.size() == 3;
    const double prompt = complete ? to_number(fields[1]).value_or(0) : 0;
    const double output = complete ? to_number(fields[2]).value_or(0) : 0;
    if (at_s < 0 || !is_length(prompt) || !is_length(output)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}:{}: a line is SECONDS,PROMPT_TOKENS,OUTPUT_TOKENS",
                        name,
                        number);
    }
    requests.push_back({at_s, static_cast<int>(prompt), static_cast<int>(output)});
  }
  if (requests.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "{}: no request in it", name);
  }
  std::ranges::stable_sort(requests, {}, &LoadRequest::at_s);
  return requests;
}

std::vector<LoadRequest> speed_up(std::vector<LoadRequest> requests, double factor) {
  for (LoadRequest& request : requests) {
    request.at_s /= factor;
  }
  return requests;
}

}  // namespace headrace
