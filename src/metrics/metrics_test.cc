#include "metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace headrace {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CountersStartAtZeroSoThatRatesWork) {
  const std::string text = Metrics("tiny").text();
  EXPECT_THAT(
      text,
      HasSubstr("vllm:request_success_total{model_name=\"tiny\",finished_reason=\"stop\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("headrace_requests_total{model_name=\"tiny\",outcome=\"rejected\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_preemptions_total{model_name=\"tiny\"} 0\n"));
}

TEST(Metrics, EveryMeasureStandsUnderItsName) {
  Metrics metrics("tiny");
  metrics.request_finished("length");
  metrics.outcome(Outcome::kOk);
  metrics.queue_time(milliseconds(2));
  metrics.time_to_first_token(milliseconds(30));
  metrics.inter_token(milliseconds(4));
  metrics.end_to_end(milliseconds(500));
  metrics.prompt_tokens(7);
  metrics.generation_tokens(3);
  metrics.step(milliseconds(5), 9);
  metrics.running_waiting(2, 5);
  metrics.kv_usage(0.25, 0.03);
  metrics.preemption(40);
  metrics.prefix_cache(100, 64);
  metrics.memory_bytes("kv", 4096);
  const std::string text = metrics.text();
  for (const char* line : {
           "vllm:request_success_total{model_name=\"tiny\",finished_reason=\"length\"} 1\n",
           "headrace_requests_total{model_name=\"tiny\",outcome=\"ok\"} 1\n",
           "vllm:request_queue_time_seconds_count{model_name=\"tiny\"} 1\n",
           "vllm:time_to_first_token_seconds_sum{model_name=\"tiny\"} 0.03\n",
           "vllm:inter_token_latency_seconds_bucket{model_name=\"tiny\",le=\"0.001\"} 0\n",
           "vllm:e2e_request_latency_seconds_sum{model_name=\"tiny\"} 0.5\n",
           "vllm:prompt_tokens_total{model_name=\"tiny\"} 7\n",
           "vllm:generation_tokens_total{model_name=\"tiny\"} 3\n",
           "headrace_step_seconds_count{model_name=\"tiny\"} 1\n",
           "headrace_batch_rows_sum{model_name=\"tiny\"} 9\n",
           "vllm:num_requests_running{model_name=\"tiny\"} 2\n",
           "vllm:num_requests_waiting{model_name=\"tiny\"} 5\n",
           "vllm:kv_cache_usage_perc{model_name=\"tiny\"} 0.25\n",
           "headrace_kv_waste_ratio{model_name=\"tiny\"} 0.03\n",
           "vllm:num_preemptions_total{model_name=\"tiny\"} 1\n",
           "headrace_recomputed_tokens_total{model_name=\"tiny\"} 40\n",
           "vllm:prefix_cache_queries_total{model_name=\"tiny\"} 100\n",
           "vllm:prefix_cache_hits_total{model_name=\"tiny\"} 64\n",
           "headrace_memory_bytes{model_name=\"tiny\",part=\"kv\"} 4096\n",
           "headrace_latency_seconds{model_name=\"tiny\",measure=\"itl\",quantile=\"0.99\"} "
           "0.004\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, SeveralModelsShareOneHeadingPerFamily) {
  const Metrics first("a");
  const Metrics second("b");
  const Metrics* const all[] = {&first, &second};
  const std::string text = Metrics::text_of(all);
  const std::string heading = "# TYPE vllm:num_requests_running gauge\n";
  const std::size_t at = text.find(heading);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find(heading, at + 1), std::string::npos);
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{model_name=\"a\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{model_name=\"b\"} 0\n"));
}

TEST(Metrics, ModelNamesAreEscaped) {
  EXPECT_THAT(Metrics("a\"\n\\b").text(), HasSubstr("model_name=\"a\\\"\\n\\\\b\""));
}

TEST(Metrics, ThreadsLoseNoCount) {
  Metrics metrics("tiny");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&metrics] {
      for (int k = 0; k < 1000; ++k) {
        metrics.generation_tokens(1);
        metrics.outcome(Outcome::kFailed);
      }
    });
  }
  EXPECT_THAT(metrics.text(), Not(HasSubstr("nan nan")));
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(metrics.text(),
              HasSubstr("vllm:generation_tokens_total{model_name=\"tiny\"} 4000\n"));
  EXPECT_THAT(metrics.text(),
              HasSubstr("headrace_requests_total{model_name=\"tiny\",outcome=\"failed\"} 4000\n"));
}

}  // namespace
}  // namespace headrace
