#include "sampling/params.h"

#include <cmath>
#include <string_view>

namespace headrace {
namespace {

struct Range {
  std::string_view name;
  float value;
  float low;
  float high;
  bool low_open;  // low itself is out
};

}  // namespace

Status validate(const SamplingParams& params, int vocab_size) {
  const Range ranges[] = {
      {"temperature", params.temperature, 0, 100, false},
      {"top_p", params.top_p, 0, 1, true},
      {"min_p", params.min_p, 0, 1, false},
      {"typical_p", params.typical_p, 0, 1, true},
      {"repetition_penalty", params.repetition_penalty, 0, 100, true},
      {"frequency_penalty", params.frequency_penalty, -2, 2, false},
      {"presence_penalty", params.presence_penalty, -2, 2, false},
  };
  for (const Range& r : ranges) {
    const bool inside = std::isfinite(r.value) && r.value <= r.high &&
                        (r.low_open ? r.value > r.low : r.value >= r.low);
    if (!inside) {
      Error error = make_error(ErrorCode::kInvalidArgument,
                               "{} must be in {}{}, {}]; it is {}",
                               r.name,
                               r.low_open ? "(" : "[",
                               r.low,
                               r.high,
                               r.value);
      error.param = r.name;
      return error;
    }
  }
  if (params.top_k < 0) {
    Error error = make_error(
        ErrorCode::kInvalidArgument, "top_k must be 0 (off) or more; it is {}", params.top_k);
    error.param = "top_k";
    return error;
  }
  for (const LogitBias& bias : params.logit_bias) {
    if (bias.token < 0 || bias.token >= vocab_size || !std::isfinite(bias.bias) ||
        std::fabs(bias.bias) > 100) {
      Error error = make_error(
          ErrorCode::kInvalidArgument,
          "logit_bias: token {} with bias {}: tokens are in [0, {}), biases in [-100, 100]",
          bias.token,
          bias.bias,
          vocab_size);
      error.param = "logit_bias";
      return error;
    }
  }
  return {};
}

}  // namespace headrace
