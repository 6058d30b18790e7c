#include <algorithm>

#include "bench/load_client.h"

namespace headrace {
namespace {

// What a target says of one request: its slowest gap stands for its gaps.
double measured(const LoadSample& sample, const SloTarget& target) {
  if (target.measure == "ttft") {
    return sample.ttft_ms;
  }
  if (target.measure == "e2e") {
    return sample.e2e_ms;
  }
  return sample.itl_ms.empty() ? 0 : std::ranges::max(sample.itl_ms);
}

// All values of ok requests that a target is about.
std::vector<double> values_of(const std::vector<const LoadSample*>& ok, const SloTarget& target) {
  std::vector<double> values;
  for (const LoadSample* const sample : ok) {
    if (target.measure == "itl") {
      values.insert(values.end(), sample->itl_ms.begin(), sample->itl_ms.end());
    } else {
      values.push_back(measured(*sample, target));
    }
  }
  return values;
}

void count_outcomes(const LoadResult& result, LoadSummary& summary) {
  std::vector<double> rejected_ms;
  for (const LoadSample& sample : result.samples) {
    switch (sample.outcome) {
      case LoadOutcome::kOk:
        ++summary.num_ok;
        break;
      case LoadOutcome::kRejected:
        ++summary.num_rejected;
        rejected_ms.push_back(sample.e2e_ms);
        break;
      case LoadOutcome::kTimeout:
        ++summary.num_timeout;
        break;
      case LoadOutcome::kFailed:
        ++summary.num_failed;
        if (summary.first_error.empty()) {
          summary.first_error = sample.error;
        }
        break;
    }
  }
  summary.rejected_ms = percentiles(std::move(rejected_ms));
}

}  // namespace

LoadSummary summarize(const LoadResult& result, const std::vector<SloTarget>& slo) {
  LoadSummary summary{.duration_s = result.duration_s, .client_cpu_s = result.client_cpu_s};
  count_outcomes(result, summary);
  std::vector<const LoadSample*> ok;
  for (const LoadSample& sample : result.samples) {
    if (sample.outcome == LoadOutcome::kOk) {
      ok.push_back(&sample);
      summary.prompt_tokens += sample.prompt_tokens;
      summary.output_tokens += sample.output_tokens;
    }
  }
  const double duration = std::max(result.duration_s, 1e-9);
  summary.output_tokens_per_s = summary.output_tokens / duration;
  if (!ok.empty()) {
    summary.prompt_tokens /= static_cast<double>(ok.size());
    summary.output_tokens /= static_cast<double>(ok.size());
  }
  summary.ttft_ms = percentiles(values_of(ok, {.measure = "ttft"}));
  summary.itl_ms = percentiles(values_of(ok, {.measure = "itl"}));
  summary.e2e_ms = percentiles(values_of(ok, {.measure = "e2e"}));
  // A request that got no answer missed every target.
  const double share_ok = result.samples.empty() ? 0
                                                 : static_cast<double>(ok.size()) /
                                                       static_cast<double>(result.samples.size());
  summary.held = !ok.empty();
  for (const SloTarget& target : slo) {
    const double met = attainment(values_of(ok, target), target.limit_ms);
    summary.slo.push_back(met);
    summary.held = summary.held && met * share_ok >= target.quantile;
  }
  const auto good = std::ranges::count_if(ok, [&slo](const LoadSample* sample) {
    return std::ranges::all_of(slo, [sample](const SloTarget& target) {
      return measured(*sample, target) <= target.limit_ms;
    });
  });
  summary.goodput = static_cast<double>(good) / duration;
  return summary;
}

}  // namespace headrace
