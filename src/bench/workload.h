// What a load is made of: requests with a time and two lengths, drawn from distributions by a seed
// or read from a trace. The same specification gives the same requests everywhere. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

// A length in tokens, in [1, most].
struct LengthDistribution {
  enum class Kind { kFixed, kUniform, kLogNormal };
  Kind kind = Kind::kFixed;
  double low = 1;   // the value; the lower end; the median
  double high = 0;  // the upper end; sigma of the logarithm
  int most = 1 << 20;

  // From two uniform numbers in [0, 1).
  int sample(double u1, double u2) const;
};

// "128", "50-200" (uniform), "lognormal:MEDIAN:SIGMA", each also with ",max=N".
Result<LengthDistribution> parse_lengths(std::string_view text);

struct LoadRequest {
  double at_s = 0;  // after the start
  int prompt_tokens = 0;
  int output_tokens = 0;
  friend bool operator==(const LoadRequest&, const LoadRequest&) = default;
};

struct WorkloadSpec {
  int num_requests = 100;
  double rate = 0;  // requests a second, Poisson; 0: all at the start
  LengthDistribution prompt{.low = 128};
  LengthDistribution output{.low = 64};
  std::uint64_t seed = 0;
};

std::vector<LoadRequest> make_workload(const WorkloadSpec& spec);

// Lines of "seconds,prompt tokens,output tokens", sorted by time; a first line that begins with no
// number is a heading, lines of "#" and empty ones are left out. Errors (kInvalidArgument) say the
// line.
Result<std::vector<LoadRequest>> parse_trace(std::string_view text, std::string_view name);

// The same requests, arriving `factor` times as fast.
std::vector<LoadRequest> speed_up(std::vector<LoadRequest> requests, double factor);

}  // namespace headrace
