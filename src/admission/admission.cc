#include "admission/admission.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr double kHeadroom = 0.8;  // of a limit: predictions are not exact, a p99 has to hold

Duration of_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Until `num_places` more sequences have ended.
double seconds_to_end(int num_places, const Backlog& backlog) {
  return num_places <= 0 ? 0 : num_places * backlog.run_s / std::max(1, backlog.max_running);
}

double prefill_seconds(std::int64_t num_tokens, const Backlog& backlog) {
  return backlog.prefill_tokens_per_s > 0
             ? static_cast<double>(num_tokens) / backlog.prefill_tokens_per_s
             : 0;
}

// A place has to be free, and the prompts before it computed: both go on at once.
double seconds_before(const Backlog& backlog) {
  const int free_places = std::max(0, backlog.max_running - backlog.num_running);
  return std::max(seconds_to_end(backlog.num_waiting + 1 - free_places, backlog),
                  prefill_seconds(backlog.waiting_tokens + backlog.prefill_tokens, backlog));
}

}  // namespace

Admission admit(const AdmissionRequest& request,
                const Backlog& backlog,
                const AdmissionLimits& limits) {
  const double before = seconds_before(backlog);
  const double predicted = before + prefill_seconds(request.prompt_tokens, backlog);
  Admission admission{.predicted_ttft = of_seconds(predicted), .why = ""};
  const auto refuse = [&admission](
                          Admission::Verdict verdict, double retry_s, std::string_view why) {
    admission.verdict = verdict;
    admission.retry_after = of_seconds(retry_s);
    admission.why = why;
    return admission;
  };
  const int free_places = std::max(0, backlog.max_running - backlog.num_running);
  const int too_many = backlog.num_waiting + 1 - free_places - limits.max_queue;
  if (too_many > 0) {
    return refuse(Admission::Verdict::kQueueFull, seconds_to_end(too_many, backlog), "requests");
  }
  const std::int64_t surplus =
      backlog.waiting_tokens + request.prompt_tokens - limits.max_queue_tokens;
  if (limits.max_queue_tokens > 0 && surplus > 0 && backlog.num_waiting > 0) {
    return refuse(Admission::Verdict::kQueueFull, prefill_seconds(surplus, backlog), "tokens");
  }
  // With nothing before it, waiting would not help: it may try.
  if (before <= 0) {
    return admission;
  }
  if (request.time_left && predicted > to_seconds(*request.time_left)) {
    const double late = predicted - to_seconds(*request.time_left);
    return refuse(Admission::Verdict::kLate, std::min(late, before), "deadline");
  }
  const double slo = to_seconds(limits.ttft) * kHeadroom;
  if (limits.ttft > Duration{0} && predicted > slo) {
    return refuse(Admission::Verdict::kLate, std::min(predicted - slo, before), "slo");
  }
  return admission;
}

}  // namespace headrace
