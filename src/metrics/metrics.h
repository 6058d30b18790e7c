// Every number the program shows, by the names of docs' interface: vLLM's where vLLM has the
// measure, headrace_ beside them. One Metrics per served model; text_of() prints those of several
// models as one page. Any thread may observe and print; an observation holds no lock longer than
// one counter's.
//
// The engine reports everything but outcome(), which only the server knows whole: it also sees what
// never reached the engine. Times are taken in nanoseconds and shown in seconds.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace headrace {

enum class Outcome { kOk, kRejected, kDegraded, kTimeout, kAborted, kFailed };
std::string_view name_of(Outcome outcome);  // as in the label: ok, rejected, ...

class Metrics {
 public:
  explicit Metrics(std::string model_name);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Requests
  void request_finished(std::string_view finish_reason);  // stop, length, abort, error
  void outcome(Outcome outcome);
  void queue_time(Duration value);
  void time_to_first_token(Duration value);
  void inter_token(Duration value);
  void end_to_end(Duration value);
  void prompt_tokens(int count);
  void generation_tokens(int count);

  // Engine, once a step
  void step(Duration value, int num_rows);
  void running_waiting(int running, int waiting);
  void kv_usage(double ratio, double waste_ratio);
  void preemption(int recomputed_tokens);
  void prefix_cache(int queried_tokens, int hit_tokens);

  void memory_bytes(std::string_view part, double bytes);

  // Prometheus text exposition format, version 0.0.4.
  std::string text() const;
  // The same for several models: each family once, with a line per model.
  static std::string text_of(std::span<const Metrics* const> all);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
