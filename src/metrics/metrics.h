// Every number the program shows, by the names of docs' interface: vLLM's where vLLM has the measure, headrace_ beside
// them. One Metrics per served model, all in one registry. Thread-safe; observing costs no lock on the engine's path
// longer than one counter's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace headrace {

enum class Outcome { kOk, kRejected, kDegraded, kTimeout, kAborted, kFailed };

class Metrics {
 public:
  explicit Metrics(std::string model_name);
  ~Metrics();

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

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
