#include "bench/machine_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

TEST(Median, OfAnEvenCountIsTheMeanOfTheMiddle) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
}

TEST(ShareOfLimit, HoldsEachRunAgainstTheBetterLimitAroundIt) {
  // 5/10, 6/10, 9/12.
  const std::vector<double> rates = {5, 6, 9};
  const std::vector<double> limits = {10, 8, 10, 12};
  const auto share = share_of_limit(rates, limits, "read bandwidth");
  ASSERT_TRUE(share.ok());
  EXPECT_DOUBLE_EQ(*share, 0.6);
}

TEST(ShareOfLimit, AboveOneFailsAndSaysWhich) {
  const std::vector<double> rates = {11};
  const std::vector<double> limits = {10, 10};
  const auto share = share_of_limit(rates, limits, "read bandwidth");
  ASSERT_FALSE(share.ok());
  EXPECT_THAT(share.error().message, testing::HasSubstr("1.10 of the read bandwidth"));
}

TEST(L2FromLatencies, IsTheLastSizeBeforeTheStep) {
  const std::vector<LatencyPoint> points = {
      {262144, 7e-9}, {1048576, 7.5e-9}, {2097152, 14e-9}, {4194304, 25e-9}};
  EXPECT_EQ(l2_from_latencies(points), 2097152U);
  EXPECT_EQ(l2_from_latencies(std::span(points).first(1)), 262144U);
}

TEST(MachineProbe, EveryTierMeasuresSomething) {
  for (const CpuTier tier : available_tiers()) {
    auto probe = MachineProbe::create(tier_name(tier), 2);
    ASSERT_TRUE(probe.ok());
    ASSERT_TRUE((*probe)->reserve(1 << 20).ok());
    const MachineLimits limits = measure_limits(**probe, 1 << 20);
    EXPECT_GT(limits.int8_ops_per_s, 1e6) << tier_name(tier);
    EXPECT_GT(limits.f32_flop_per_s, 1e6) << tier_name(tier);
    EXPECT_GT(limits.read_bytes_per_s, 1e6) << tier_name(tier);
  }
}

TEST(MachineProbe, ATierThatIsNotThereIsRefused) {
  EXPECT_FALSE(MachineProbe::create("avx1024", 1).ok());
}

}  // namespace
}  // namespace headrace
