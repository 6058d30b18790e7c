#include "metrics/metrics.h"

#include <array>
#include <map>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>
#include <prometheus/text_serializer.h>
#include <utility>
#include <vector>

namespace headrace {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// Fine enough that a p99 of a few milliseconds is not blurred: neighbours differ by 20 to 35 %.
Buckets latency_buckets(double end_s) {
  static constexpr std::array<double, 9> kSteps = {1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 7.5};
  Buckets buckets;
  for (double decade = 1; decade < end_s * 1000; decade *= 10) {
    for (double step : kSteps) {
      const double bound_s = step * decade / 1000;  // one rounding, so that 0.32 prints as 0.32
      if (bound_s <= end_s) {
        buckets.push_back(bound_s);
      }
    }
  }
  return buckets;
}

Buckets row_buckets() {
  return {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048};
}

prometheus::Summary::Quantiles quantiles() { return {{0.5, 0.02}, {0.9, 0.01}, {0.99, 0.001}}; }

constexpr std::array<std::string_view, 4> kFinishReasons = {"stop", "length", "abort", "error"};
constexpr std::array<Outcome, 6> kOutcomes = {Outcome::kOk,
                                              Outcome::kRejected,
                                              Outcome::kDegraded,
                                              Outcome::kTimeout,
                                              Outcome::kAborted,
                                              Outcome::kFailed};

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kDegraded:
      return "degraded";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kAborted:
      return "aborted";
    case Outcome::kFailed:
      return "failed";
  }
  return "failed";
}

class Metrics::Impl {
 public:
  explicit Impl(std::string model_name) : labels_{{"model_name", std::move(model_name)}} {
    for (std::string_view reason : kFinishReasons) {
      success_by_reason(reason);
    }
    for (Outcome outcome : kOutcomes) {
      requests_by_outcome(outcome);
    }
  }

  prometheus::Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(labels_).Register(registry_).Add(
        {});
  }
  prometheus::Gauge& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(labels_).Register(registry_).Add(
        {});
  }
  prometheus::Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram()
        .Name(name)
        .Help(help)
        .Labels(labels_)
        .Register(registry_)
        .Add({}, buckets);
  }
  prometheus::Summary& latency(const char* measure) {
    return latency_family_.Add({{"measure", measure}}, quantiles(), std::chrono::seconds(60), 6);
  }
  prometheus::Counter& success_by_reason(std::string_view reason) {
    return success_family_.Add({{"finished_reason", std::string(reason)}});
  }
  prometheus::Counter& requests_by_outcome(Outcome outcome) {
    return requests_family_.Add({{"outcome", std::string(name_of(outcome))}});
  }
  prometheus::Gauge& memory_of_part(std::string_view part) {
    return memory_family_.Add({{"part", std::string(part)}});
  }
  std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

 private:
  prometheus::Labels labels_;
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Summary>& latency_family_ =
      prometheus::BuildSummary()
          .Name("headrace_latency_seconds")
          .Help("Latencies over the last minute, by measure.")
          .Labels(labels_)
          .Register(registry_);
  prometheus::Family<prometheus::Counter>& success_family_ =
      prometheus::BuildCounter()
          .Name("vllm:request_success_total")
          .Help("Requests that ended, by what ended them.")
          .Labels(labels_)
          .Register(registry_);
  prometheus::Family<prometheus::Counter>& requests_family_ =
      prometheus::BuildCounter()
          .Name("headrace_requests_total")
          .Help("Requests answered, by outcome.")
          .Labels(labels_)
          .Register(registry_);
  prometheus::Family<prometheus::Gauge>& memory_family_ = prometheus::BuildGauge()
                                                              .Name("headrace_memory_bytes")
                                                              .Help("Memory held, by part.")
                                                              .Labels(labels_)
                                                              .Register(registry_);

 public:
  prometheus::Gauge& running = gauge("vllm:num_requests_running", "Requests in the batch.");
  prometheus::Gauge& waiting =
      gauge("vllm:num_requests_waiting", "Requests that wait to enter the batch.");
  prometheus::Gauge& kv_usage = gauge("vllm:kv_cache_usage_perc",
                                      "Share of KV blocks that sequences hold; 1 is all of them.");
  prometheus::Histogram& ttft = histogram("vllm:time_to_first_token_seconds",
                                          "Time from a request's arrival to its first token.",
                                          latency_buckets(100));
  prometheus::Histogram& inter_token = histogram("vllm:inter_token_latency_seconds",
                                                 "Time between two tokens of a request.",
                                                 latency_buckets(10));
  prometheus::Histogram& end_to_end = histogram("vllm:e2e_request_latency_seconds",
                                                "Time from a request's arrival to its end.",
                                                latency_buckets(1000));
  prometheus::Histogram& queue_time = histogram("vllm:request_queue_time_seconds",
                                                "Time a request waited before its first step.",
                                                latency_buckets(100));
  prometheus::Counter& prompt_tokens =
      counter("vllm:prompt_tokens_total", "Prompt tokens of requests.");
  prometheus::Counter& generation_tokens =
      counter("vllm:generation_tokens_total", "Tokens generated.");
  prometheus::Counter& preemptions = counter(
      "vllm:num_preemptions_total", "Sequences put back to waiting because KV blocks ran out.");
  prometheus::Counter& prefix_queries =
      counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  prometheus::Counter& prefix_hits =
      counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  prometheus::Counter& recomputed =
      counter("headrace_recomputed_tokens_total", "Tokens computed again after a preemption.");
  prometheus::Gauge& kv_waste =
      gauge("headrace_kv_waste_ratio", "Share of the held KV slots that store no token.");
  prometheus::Histogram& step =
      histogram("headrace_step_seconds", "Duration of an engine step.", latency_buckets(10));
  prometheus::Histogram& batch_rows =
      histogram("headrace_batch_rows", "Rows (tokens computed) of an engine step.", row_buckets());
  prometheus::Summary& recent_ttft = latency("ttft");
  prometheus::Summary& recent_inter_token = latency("itl");
  prometheus::Summary& recent_end_to_end = latency("e2e");
  prometheus::Summary& recent_queue = latency("queue");
};

Metrics::Metrics(std::string model_name) : impl_(std::make_unique<Impl>(std::move(model_name))) {}
Metrics::~Metrics() = default;

void Metrics::request_finished(std::string_view finish_reason) {
  impl_->success_by_reason(finish_reason).Increment();
}
void Metrics::outcome(Outcome outcome) { impl_->requests_by_outcome(outcome).Increment(); }

void Metrics::queue_time(Duration value) {
  impl_->queue_time.Observe(to_seconds(value));
  impl_->recent_queue.Observe(to_seconds(value));
}

void Metrics::time_to_first_token(Duration value) {
  impl_->ttft.Observe(to_seconds(value));
  impl_->recent_ttft.Observe(to_seconds(value));
}

void Metrics::inter_token(Duration value) {
  impl_->inter_token.Observe(to_seconds(value));
  impl_->recent_inter_token.Observe(to_seconds(value));
}

void Metrics::end_to_end(Duration value) {
  impl_->end_to_end.Observe(to_seconds(value));
  impl_->recent_end_to_end.Observe(to_seconds(value));
}

void Metrics::prompt_tokens(int count) { impl_->prompt_tokens.Increment(count); }
void Metrics::generation_tokens(int count) { impl_->generation_tokens.Increment(count); }

void Metrics::step(Duration value, int num_rows) {
  impl_->step.Observe(to_seconds(value));
  impl_->batch_rows.Observe(num_rows);
}

void Metrics::running_waiting(int running, int waiting) {
  impl_->running.Set(running);
  impl_->waiting.Set(waiting);
}

void Metrics::kv_usage(double ratio, double waste_ratio) {
  impl_->kv_usage.Set(ratio);
  impl_->kv_waste.Set(waste_ratio);
}

void Metrics::preemption(int recomputed_tokens) {
  impl_->preemptions.Increment();
  impl_->recomputed.Increment(recomputed_tokens);
}

void Metrics::prefix_cache(int queried_tokens, int hit_tokens) {
  impl_->prefix_queries.Increment(queried_tokens);
  impl_->prefix_hits.Increment(hit_tokens);
}

void Metrics::memory_bytes(std::string_view part, double bytes) {
  impl_->memory_of_part(part).Set(bytes);
}

std::string Metrics::text() const {
  const Metrics* self = this;
  return text_of({&self, 1});
}

std::string Metrics::text_of(std::span<const Metrics* const> all) {
  std::map<std::string, prometheus::MetricFamily> by_name;
  for (const Metrics* metrics : all) {
    for (prometheus::MetricFamily& family : metrics->impl_->collect()) {
      const auto [place, is_new] = by_name.try_emplace(family.name, family);
      if (is_new) {
        continue;
      }
      auto& merged = place->second.metric;
      merged.insert(merged.end(), family.metric.begin(), family.metric.end());
    }
  }
  std::vector<prometheus::MetricFamily> families;
  families.reserve(by_name.size());
  for (auto& [name, family] : by_name) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace headrace
