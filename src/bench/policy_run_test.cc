// The policies over a fake model whose steps cost what a processor's do: some time, and some more
// for each row.
#include "bench/policy_run.h"

#include "gtest/gtest.h"

#include "support/byte_tokenizer.h"
#include "support/fake_runner.h"

namespace headrace {
namespace {

using testing::FakeRunner;

constexpr int kContext = 1024;
constexpr int kBatch = 8;

class PoliciesBench : public ::testing::Test {
 protected:
  PoliciesBench() {
    FakeRunner::Options fake{.limits = {.max_rows = 128,
                                        .max_sequences = kBatch,
                                        .max_logit_rows = 64,
                                        .max_context = kContext},
                             .vocab_size = testing::kFirstWord,
                             .logits = [](std::span<const TokenId>, std::span<float> logits) {
                               std::ranges::fill(logits, 0.0F);
                               logits['a'] = 1;
                             }};
    fake.hook = [this](std::span<const SequenceRows> rows) {
      std::size_t num_rows = 0;
      for (const SequenceRows& sequence : rows) {
        num_rows += sequence.tokens.size();
      }
      clock_->advance(std::chrono::microseconds(3000 + 1000 * num_rows));
    };
    runner_ = std::make_unique<FakeRunner>(std::move(fake));
  }

  PolicyRun run(BatchingKind kind,
                const std::vector<LoadRequest>& workload,
                int reserved_tokens = 0) {
    PolicySetup setup{.batching = kind,
                      .limits = {.max_sequences = kBatch,
                                 .max_step_tokens = 128,
                                 .watermark = 0,
                                 .reserved_tokens = reserved_tokens},
                      .num_blocks = kContext / 16 * kBatch};
    auto result = run_policy({.runner = *runner_,
                              .tokenizer = testing::make_byte_tokenizer(),
                              .clock = clock_,
                              .sleep = [this](Duration time) { clock_->advance(time); }},
                             setup,
                             workload);
    EXPECT_TRUE(result.ok());
    return *std::move(result);
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::unique_ptr<FakeRunner> runner_;
};

std::vector<LoadRequest> mixed_lengths() {
  return make_workload({.num_requests = 64,
                        .prompt = *parse_lengths("lognormal:100:0.6,max=400"),
                        .output = *parse_lengths("lognormal:100:0.9,max=500"),
                        .seed = 3});
}

double p99(const std::vector<double>& values) { return percentile(values, 0.99); }

TEST_F(PoliciesBench, MixedLengthsFavourContinuousThenDynamic) {
  const std::vector<LoadRequest> workload = mixed_lengths();
  const PolicyRun fixed = run(BatchingKind::kStatic, workload);
  const PolicyRun dynamic = run(BatchingKind::kDynamic, workload);
  const PolicyRun continuous = run(BatchingKind::kContinuous, workload);
  EXPECT_EQ(fixed.output_tokens, continuous.output_tokens);
  EXPECT_EQ(fixed.output_tokens, dynamic.output_tokens);
  EXPECT_GE(continuous.output_tokens_per_s, 2 * fixed.output_tokens_per_s);
  EXPECT_LE(p99(continuous.e2e_ms), p99(fixed.e2e_ms) / 2);
  EXPECT_GT(dynamic.output_tokens_per_s, fixed.output_tokens_per_s);
  EXPECT_LT(dynamic.output_tokens_per_s, continuous.output_tokens_per_s);
  EXPECT_GT(fixed.padding_share, 0.4);
  EXPECT_EQ(dynamic.padding_share, 0);
  EXPECT_EQ(continuous.padding_share, 0);
}

TEST_F(PoliciesBench, EqualLengthsTogetherAreAsFastStatically) {
  const auto workload = make_workload(
      {.num_requests = 32, .prompt = *parse_lengths("128"), .output = *parse_lengths("128")});
  const PolicyRun fixed = run(BatchingKind::kStatic, workload);
  const PolicyRun continuous = run(BatchingKind::kContinuous, workload);
  EXPECT_EQ(fixed.padding_share, 0);
  EXPECT_NEAR(fixed.output_tokens_per_s / continuous.output_tokens_per_s, 1, 0.05);
}

TEST_F(PoliciesBench, ContiguousMemoryIsWastedAndPagedIsNot) {
  const auto workload = make_workload({.num_requests = 48,
                                       .prompt = *parse_lengths("lognormal:250:0.5,max=450"),
                                       .output = *parse_lengths("lognormal:250:0.5,max=450"),
                                       .seed = 3});
  EXPECT_GE(run(BatchingKind::kContinuous, workload, kContext).waste_ratio, 0.3);
  EXPECT_LT(run(BatchingKind::kContinuous, workload).waste_ratio, 0.04);
}

TEST_F(PoliciesBench, RequestsArriveAtTheirTimes) {
  const PolicyRun run_ = run(BatchingKind::kContinuous, {{5, 10, 1}, {6, 10, 1}});
  ASSERT_EQ(run_.ttft_ms.size(), 2U);
  EXPECT_NEAR(run_.ttft_ms[0], 13, 2);
  EXPECT_NEAR(run_.ttft_ms[1], 13, 2);
  EXPECT_NEAR(run_.duration_s, 1.013, 0.002);
}

TEST_F(PoliciesBench, ARequestBeyondTheContextIsRefused) {
  const auto result =
      run_policy({.runner = *runner_, .tokenizer = testing::make_byte_tokenizer(), .clock = clock_},
                 {.num_blocks = 100},
                 {{0, 1000, 25}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace headrace
