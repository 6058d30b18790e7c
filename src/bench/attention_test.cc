// The counted traffic, the bound and the measurement of `bench attention`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/attention_bound.h"
#include "bench/attention_speed.h"
#include "bench/attention_traffic.h"
#include "bench/cache_model.h"
#include "bench/resident.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

constexpr std::size_t kPage = CacheModel::kPage;
constexpr std::size_t kHuge = std::size_t{1} << 40;  // a cache that holds everything

TEST(CacheModel, CountsMissesAndWhatIsWrittenBack) {
  CacheModel model(2 * kPage, 4 * kPage);
  model.read(0, kPage);
  model.read(100, 8);  // a hit
  EXPECT_EQ(model.bytes_moved(), kPage);
  model.write(kPage, 1);  // not fetched
  EXPECT_EQ(model.bytes_moved(), kPage);
  model.read(2 * kPage, 2 * kPage);  // drops page 0, then the written page 1
  EXPECT_EQ(model.bytes_moved(), 4 * kPage);
  model.flush();
  EXPECT_EQ(model.bytes_moved(), 4 * kPage);
}

TEST(CacheModel, DropsWhatWasUsedLongestAgo) {
  CacheModel model(2 * kPage, 3 * kPage);
  model.read(0, 1);
  model.read(kPage, 1);
  model.read(0, 1);
  model.read(2 * kPage, 1);  // drops page 1
  model.read(0, 1);          // still there
  EXPECT_EQ(model.bytes_moved(), 3 * kPage);
  model.read(kPage, 1);
  EXPECT_EQ(model.bytes_moved(), 4 * kPage);
}

TEST(AttentionTraffic, InALargeEnoughCacheIsEachArrayOnce) {
  // 1,024 tokens, one head of 64: q and out 256 KiB each, the cache 256 KiB, scratch written back
  // once.
  const AttentionShape shape{1024, 1, 1, 64, 2};
  const std::size_t scratch = attention_scratch_floats(kAttentionTileRows, 64) * 4;
  const std::size_t scratch_pages = (scratch + kPage - 1) / kPage * kPage;
  EXPECT_EQ(flash_traffic(shape, kHuge), 3 * 262144 + scratch_pages);
  // And keys, values and scores as floats, written back once.
  EXPECT_EQ(naive_traffic(shape, NaiveScope::kAllPairs, kHuge),
            3 * 262144 + scratch_pages + 2 * 262144 + 4 * 1048576);
}

TEST(AttentionTraffic, ScoresOfTheNaiveFormAreWrittenTwiceAndReadTwice) {
  // 4,096 tokens: 64 MiB of scores through 1 MiB, while keys and values (1 MiB each) miss too.
  const AttentionShape shape{4096, 1, 1, 64, 2};
  const double n2 = 4096.0 * 4096.0;
  const auto bytes = static_cast<double>(naive_traffic(shape, NaiveScope::kAllPairs, 1 << 20));
  const double keys_and_values =
      2.0 * 4096 * 256 * ((4096 + kAttentionTileRows - 1) / kAttentionTileRows);
  EXPECT_NEAR(bytes, 16 * n2 + keys_and_values, 0.03 * bytes);
}

TEST(AttentionTraffic, FlashMovesLessThanAnEighthFrom1024TokensOn) {
  for (int n = 1024; n <= 16384; n *= 2) {
    const AttentionShape shape{n, 2, 2, 64, 2};
    const auto flash = static_cast<double>(flash_traffic(shape, 2 << 20));
    EXPECT_GE(static_cast<double>(naive_traffic(shape, NaiveScope::kAllPairs, 2 << 20)) / flash, 8)
        << n;
  }
}

TEST(AttentionTraffic, LeavingMaskedPairsOutHalvesTheNaiveForm) {
  const AttentionShape shape{8192, 1, 1, 64, 2};
  const auto all = static_cast<double>(naive_traffic(shape, NaiveScope::kAllPairs, 1 << 20));
  const auto causal = static_cast<double>(naive_traffic(shape, NaiveScope::kUnmasked, 1 << 20));
  EXPECT_NEAR(causal / all, 0.5, 0.05);
}

TEST(AttentionBound, OfOneKeyIsAFewRoundings) {
  const AttentionError one{
      .num_tokens = 1, .head_dim = 16, .scale = 0, .max_query = 1, .max_key = 1, .max_value = 1};
  EXPECT_GT(attention_bound(one), 0);
  EXPECT_LT(attention_bound(one), 2e-4);
  AttentionError twice = one;
  twice.max_value = 2;
  EXPECT_DOUBLE_EQ(attention_bound(twice), 2 * attention_bound(one));
}

TEST(AttentionBound, GrowsWithTheScores) {
  AttentionError error{.num_tokens = 512,
                       .head_dim = 64,
                       .scale = 0.125,
                       .max_query = 1,
                       .max_key = 1,
                       .max_value = 1};
  const double small = attention_bound(error);
  error.max_query = 100;
  EXPECT_GT(attention_bound(error), 10 * small);
}

TEST(Resident, ThePeakCanBeStartedAnew) {
  ASSERT_TRUE(reset_peak_resident().ok());
  const std::size_t before = *resident_bytes();
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  {
    std::vector<char> memory(kBytes, 1);
    EXPECT_GE(*peak_resident_bytes(), before + kBytes / 10 * 9);
  }
  ASSERT_TRUE(reset_peak_resident().ok());
  EXPECT_LT(*peak_resident_bytes(), before + kBytes / 2);
}

TEST(BenchAttention, BothFormsAgreeWithinTheBoundInEveryTier) {
  for (const CpuTier tier : available_tiers()) {
    for (const KvType kv : {KvType::kF16, KvType::kF32}) {
      AttentionSpeedOptions options;
      options.lengths = {1, 300};
      options.num_heads = 4;
      options.num_kv_heads = 2;
      options.head_dim = 32;
      options.kv = kv;
      options.num_threads = 2;
      options.repeat = 1;
      options.tier = tier_name(tier);
      const auto speed = measure_attention(options, [](const std::string&) {});
      ASSERT_TRUE(speed.ok()) << speed.error().message;
      ASSERT_EQ(speed->rows.size(), 2U);
      for (const AttentionRow& row : speed->rows) {
        EXPECT_LE(row.max_abs_diff, 1e-5) << row.n;
        EXPECT_LE(row.max_abs_diff, row.bound) << row.n;
        EXPECT_GT(row.naive_s, 0);
        EXPECT_GT(row.flash_s, 0);
      }
      EXPECT_GT(speed->rows[1].max_abs_diff, 0);  // two forms, not one twice
    }
  }
}

TEST(BenchAttention, RefusesShapesThatAreNone) {
  const auto refused = [](auto&& change) {
    AttentionSpeedOptions options;
    options.lengths = {512};
    change(options);
    return !check_options(options).ok();
  };
  EXPECT_FALSE(refused([](AttentionSpeedOptions&) {}));
  EXPECT_TRUE(refused([](AttentionSpeedOptions& o) { o.lengths = {0}; }));
  EXPECT_TRUE(refused([](AttentionSpeedOptions& o) { o.lengths.clear(); }));
  EXPECT_TRUE(refused([](AttentionSpeedOptions& o) { o.num_kv_heads = 3; }));
  EXPECT_TRUE(refused([](AttentionSpeedOptions& o) { o.head_dim = 24; }));
  EXPECT_TRUE(refused([](AttentionSpeedOptions& o) { o.repeat = 0; }));
  EXPECT_TRUE(refused([](AttentionSpeedOptions& o) { o.num_threads = -1; }));
}

}  // namespace
}  // namespace headrace
