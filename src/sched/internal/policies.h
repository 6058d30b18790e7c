// The makers behind make_policy(). The limits are valid.
#pragma once

#include <memory>

#include "sched/policy.h"

namespace headrace {

std::unique_ptr<BatchingPolicy> make_continuous_policy(const SchedulerLimits& limits);
std::unique_ptr<BatchingPolicy> make_dynamic_policy(const SchedulerLimits& limits);
std::unique_ptr<BatchingPolicy> make_static_policy(const SchedulerLimits& limits);

}  // namespace headrace
