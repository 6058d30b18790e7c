// Whether a request may wait at all: a pure function of the request, of what stands before it, and
// of the limits. A request is refused when the queue holds too many requests or tokens, or when it
// is predicted to get its first token later than it may; then the answer says when to come back.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace headrace {

// What the engine has to do before a request that comes now, and how fast it works.
struct Backlog {
  int num_waiting = 0;  // accepted, not running
  int num_running = 0;
  int max_running = 1;
  std::int64_t waiting_tokens = 0;  // of prompts that wait
  std::int64_t prefill_tokens = 0;  // of prompts that run, not computed yet
  double prefill_tokens_per_s = 0;  // 0: not known yet
  double run_s = 0;                 // how long a sequence runs, lately; 0: not known yet
};

struct AdmissionLimits {
  int max_queue = 256;                // requests that wait beside those for whom a place is free
  std::int64_t max_queue_tokens = 0;  // of prompts that wait; 0: no limit
  Duration ttft{0};                   // first tokens later than this are refused; 0: no limit
};

struct AdmissionRequest {
  int prompt_tokens = 0;
  std::optional<Duration> time_left{};  // until its deadline
};

struct Admission {
  enum class Verdict { kAccept, kQueueFull, kLate };
  Verdict verdict = Verdict::kAccept;
  Duration predicted_ttft{0};  // 0: nothing is known yet
  Duration retry_after{0};     // when it would be accepted, if nothing else came
  std::string_view why{};      // of a refusal: "requests", "tokens", "deadline", "slo"
};

Admission admit(const AdmissionRequest& request,
                const Backlog& backlog,
                const AdmissionLimits& limits);

}  // namespace headrace
