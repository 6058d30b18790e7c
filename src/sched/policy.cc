#include "sched/policy.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "sched/internal/policies.h"

namespace headrace {
namespace {

constexpr std::array<std::pair<BatchingKind, std::string_view>, 3> kNames = {{
    {BatchingKind::kContinuous, "continuous"},
    {BatchingKind::kDynamic, "dynamic"},
    {BatchingKind::kStatic, "static"},
}};

}  // namespace

std::string_view name_of(BatchingKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) {
      return name;
    }
  }
  return "";
}

std::optional<BatchingKind> batching_kind(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (known == name) {
      return kind;
    }
  }
  return std::nullopt;
}

std::unique_ptr<BatchingPolicy> make_policy(BatchingKind kind, const SchedulerLimits& limits) {
  HR_CHECK(limits.max_sequences >= 1 && limits.max_step_tokens >= 1 && limits.max_logit_rows >= 1);
  HR_CHECK(limits.watermark >= 0 && limits.watermark < 1);
  HR_CHECK(limits.batch_delay >= Duration{0} && limits.reserved_tokens >= 0);
  switch (kind) {
    case BatchingKind::kContinuous:
      return make_continuous_policy(limits);
    case BatchingKind::kDynamic:
      return make_dynamic_policy(limits);
    case BatchingKind::kStatic:
      break;
  }
  return make_static_policy(limits);
}

}  // namespace headrace
