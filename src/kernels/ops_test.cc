// The small operations of the CPU backend, its memory and its stream.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Backend> make(CpuTier tier,
                              int num_threads = 1,
                              StreamMode stream = StreamMode::kEager) {
  auto made = make_cpu_backend({num_threads, tier_name(tier), stream});
  HR_CHECK(made.ok());
  return std::move(made).value();
}

std::vector<float> values(std::size_t count, std::uint32_t seed) {
  std::vector<float> out;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    out.push_back(static_cast<float>(static_cast<double>(seed >> 8) * 0x1p-23 - 1.0));
  }
  return out;
}

Buffer allocate(Backend& backend, std::size_t bytes, MemoryPart part = MemoryPart::kWorkspace) {
  auto made = backend.alloc(bytes, part);
  HR_CHECK(made.ok());
  return std::move(made).value();
}

class Ops : public testing::TestWithParam<CpuTier> {};

TEST_P(Ops, RmsNormMatchesFloat64AtEveryTail) {
  const auto backend = make(GetParam(), 2);
  for (const int dim : {1, 15, 16, 17, 33, 64, 576, 2048}) {
    for (const bool add : {false, true}) {
      const std::vector<float> y = values(static_cast<std::size_t>(dim) * 3, 1);
      const std::vector<float> weight = values(dim, 2);
      const std::vector<float> before = values(y.size(), 3);
      std::vector<float> out = before;
      backend->rms_norm(y.data(), weight.data(), 1e-5F, 3, dim, add, out.data());
      backend->synchronize();
      for (int row = 0; row < 3; ++row) {
        double squares = 0;
        for (int i = 0; i < dim; ++i) {
          squares += static_cast<double>(y[row * dim + i]) * y[row * dim + i];
        }
        const double factor = 1 / std::sqrt(squares / dim + static_cast<double>(1e-5F));
        for (int i = 0; i < dim; ++i) {
          const double expected =
              y[row * dim + i] * factor * weight[i] + (add ? before[row * dim + i] : 0.0F);
          // dim / 32 additions a lane and a few roundings, relative to values of at most 1 / rms
          ASSERT_NEAR(out[row * dim + i], expected, 0x1p-24 * (dim / 32.0 + 16) * (factor + 2))
              << dim;
        }
      }
    }
  }
}

TEST_P(Ops, RmsNormOfARowIsTheSameInAnyBatch) {
  constexpr int kRows = 300;
  constexpr int kDim = 576;
  const std::vector<float> y = values(std::size_t{kRows} * kDim, 4);
  const std::vector<float> weight = values(kDim, 5);
  std::vector<float> many(y.size());
  make(GetParam(), 3)->rms_norm(y.data(), weight.data(), 1e-6F, kRows, kDim, false, many.data());
  std::vector<float> single(y.size());
  const auto backend = make(GetParam());
  for (std::size_t row = 0; row < kRows; ++row) {
    backend->rms_norm(&y[row * kDim], weight.data(), 1e-6F, 1, kDim, false, &single[row * kDim]);
  }
  EXPECT_EQ(std::memcmp(many.data(), single.data(), many.size() * sizeof(float)), 0);
}

TEST_P(Ops, RopeTableHoldsCosineAndSineOfTheRoundedAngle) {
  const auto backend = make(GetParam(), 2);
  const std::vector<std::int32_t> positions = {0, 1, 77, 8191, 131071};
  std::vector<float> inv_freq;
  for (int i = 0; i < 32; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(100000.0, -i / 32.0)));
  }
  std::vector<float> table(positions.size() * 64);
  backend->rope_table({positions.data(), 5, inv_freq.data(), 64, 1.25F}, table.data());
  backend->synchronize();
  for (std::size_t row = 0; row < positions.size(); ++row) {
    for (std::size_t i = 0; i < 32; ++i) {
      const float angle = static_cast<float>(positions[row]) * inv_freq[i];
      EXPECT_NEAR(table[row * 64 + i], 1.25 * std::cos(static_cast<double>(angle)), 0x1p-23);
      EXPECT_NEAR(table[row * 64 + 32 + i], 1.25 * std::sin(static_cast<double>(angle)), 0x1p-23);
    }
  }
}

struct RopeCase {
  RopeStyle style = RopeStyle::kHalves;
  int head_dim = 64;
  int rotary_dim = 64;
  bool norm = false;
};

// The row's heads in float64.
std::vector<double> turned(const RopeCase& shape,
                           const float* heads,
                           int num_heads,
                           const float* cos_sin,
                           const std::vector<float>& norm) {
  std::vector<double> out(heads, heads + static_cast<std::ptrdiff_t>(num_heads) * shape.head_dim);
  const int half = shape.rotary_dim / 2;
  for (int head = 0; head < num_heads; ++head) {
    double* x = &out[static_cast<std::size_t>(head * shape.head_dim)];
    if (shape.norm) {
      double squares = 0;
      for (int i = 0; i < shape.head_dim; ++i) {
        squares += x[i] * x[i];
      }
      for (int i = 0; i < shape.head_dim; ++i) {
        x[i] *= norm[i] / std::sqrt(squares / shape.head_dim + static_cast<double>(1e-6F));
      }
    }
    for (int i = 0; i < half; ++i) {
      double& a = shape.style == RopeStyle::kHalves ? x[i] : x[2 * i];
      double& b = shape.style == RopeStyle::kHalves ? x[i + half] : x[2 * i + 1];
      const double turned_a = a * cos_sin[i] - b * cos_sin[half + i];
      b = b * cos_sin[i] + a * cos_sin[half + i];
      a = turned_a;
    }
  }
  return out;
}

TEST_P(Ops, RopeAppendNormalizesAndTurnsHeads) {
  constexpr int kRows = 5;
  constexpr int kHeads = 3;
  for (const RopeCase& shape : {RopeCase{RopeStyle::kHalves, 64, 64, false},
                                RopeCase{RopeStyle::kInterleaved, 64, 64, false},
                                RopeCase{RopeStyle::kHalves, 16, 16, true},
                                RopeCase{RopeStyle::kHalves, 256, 256, true},
                                RopeCase{RopeStyle::kHalves, 80, 32, false},
                                RopeCase{RopeStyle::kInterleaved, 128, 48, true}}) {
    const auto backend = make(GetParam(), 2);
    const auto dim = static_cast<std::size_t>(shape.head_dim);
    const std::vector<float> q_before = values(kRows * kHeads * dim, 6);
    std::vector<float> q = q_before;
    std::vector<float> k = values(kRows * dim, 7);
    const std::vector<float> k_before = k;
    const std::vector<float> v = values(kRows * dim, 8);
    const std::vector<float> norm = values(dim, 9);
    const std::vector<std::int32_t> positions = {3, 900, 17, 0, 5000};
    const std::vector<float> inv_freq = values(static_cast<std::size_t>(shape.rotary_dim) / 2, 10);
    std::vector<float> table(kRows * static_cast<std::size_t>(shape.rotary_dim));
    backend->rope_table({positions.data(), kRows, inv_freq.data(), shape.rotary_dim, 1},
                        table.data());
    const std::vector<std::int32_t> slots = {16, 17, 40, 31, 33};
    const std::size_t block_bytes = backend->kv_block_bytes(KvType::kF32, 1, shape.head_dim);
    const Buffer cache = allocate(*backend, 3 * block_bytes, MemoryPart::kKv);
    RopeAppendArgs args;
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.num_rows = kRows;
    args.num_heads = kHeads;
    args.cos_sin = table.data();
    args.rotary_dim = shape.rotary_dim;
    args.style = shape.style;
    args.q_norm = shape.norm ? norm.data() : nullptr;
    args.k_norm = shape.norm ? norm.data() : nullptr;
    args.norm_eps = 1e-6F;
    args.slots = slots.data();
    args.kv = {
        cache.as<>(), static_cast<std::int64_t>(block_bytes), KvType::kF32, 1, shape.head_dim};
    backend->rope_append(args);
    backend->synchronize();
    for (std::size_t row = 0; row < kRows; ++row) {
      const float* angles = &table[row * static_cast<std::size_t>(shape.rotary_dim)];
      const std::vector<double> expected_q =
          turned(shape, &q_before[row * kHeads * dim], kHeads, angles, norm);
      for (std::size_t i = 0; i < kHeads * dim; ++i) {
        ASSERT_NEAR(q[row * kHeads * dim + i], expected_q[i], 4e-6);
      }
      const std::vector<double> expected_k = turned(shape, &k_before[row * dim], 1, angles, norm);
      const auto* block =
          cache.as<const float>() + static_cast<std::size_t>(slots[row] / 16) * 32 * dim;
      const auto offset = static_cast<std::size_t>(slots[row] % 16);
      for (std::size_t d = 0; d < dim; ++d) {
        ASSERT_NEAR(block[d * 16 + offset], expected_k[d], 4e-6);
        ASSERT_EQ(block[16 * dim + offset * dim + d], v[row * dim + d]);
      }
    }
    EXPECT_EQ(cache.as<const float>()[0], 0.0F);  // block 0 was nobody's slot
  }
}

TEST_P(Ops, GatherTakesRowsInTheOrderAsked) {
  const auto backend = make(GetParam());
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> rows = {2, 0, 2};
  std::vector<float> out(6);
  backend->gather_rows(x.data(), rows.data(), 3, 2, out.data());
  backend->synchronize();
  EXPECT_THAT(out, ElementsAre(5, 6, 1, 2, 5, 6));
}

TEST_P(Ops, LazyStreamRunsInOrderAtSynchronize) {
  const auto backend = make(GetParam(), 1, StreamMode::kLazy);
  const Buffer device = allocate(*backend, 2 * sizeof(float));
  const std::vector<float> host = {3, 4};
  const std::vector<std::int32_t> rows = {1};
  float last = -1;
  std::vector<float> back = {-1, -1};
  backend->upload(device.as<>(), host.data(), 8);
  backend->gather_rows(device.as<float>(), rows.data(), 1, 1, &last);
  backend->download(back.data(), device.as<>(), 8);
  EXPECT_EQ(last, -1);
  EXPECT_THAT(back, ElementsAre(-1, -1));
  EXPECT_THAT(device.as<float>()[0], 0);
  backend->synchronize();
  EXPECT_EQ(last, 4);
  EXPECT_THAT(back, ElementsAre(3, 4));
}

INSTANTIATE_TEST_SUITE_P(Tiers,
                         Ops,
                         testing::ValuesIn(available_tiers()),
                         [](const testing::TestParamInfo<CpuTier>& tier) {
                           return std::string(tier_name(tier.param));
                         });

TEST(CpuBackend, MemoryIsZeroedAlignedAndCountedUntilItDies) {
  const auto backend = make(CpuTier::kScalar);
  const std::size_t before = backend->memory().bytes(MemoryPart::kKv);
  {
    const Buffer small = allocate(*backend, 100, MemoryPart::kKv);
    const Buffer large = allocate(*backend, (std::size_t{5} << 20) + 3, MemoryPart::kKv);
    EXPECT_EQ(backend->memory().bytes(MemoryPart::kKv) - before, 5242983U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.as<>()) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.as<>()) % 64, 0U);
    EXPECT_TRUE(std::all_of(
        large.as<char>(), large.as<char>() + large.bytes(), [](char x) { return x == 0; }));
  }
  EXPECT_EQ(backend->memory().bytes(MemoryPart::kKv), before);
}

TEST(CpuBackend, MemoryThatDoesNotExistIsAnError) {
  const auto backend = make(CpuTier::kScalar);
  const auto result = backend->alloc(std::numeric_limits<std::size_t>::max() / 4, MemoryPart::kKv);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(backend->memory().bytes(MemoryPart::kKv), 0U);
}

TEST(CpuBackend, KvBlockHoldsKeysAndValuesOfSixteenTokens) {
  const auto backend = make(CpuTier::kScalar);
  EXPECT_EQ(backend->kv_block_bytes(KvType::kF16, 3, 64), 16U * 2 * 3 * 64 * 2);
  EXPECT_EQ(backend->kv_block_bytes(KvType::kF32, 1, 256), 16U * 2 * 1 * 256 * 4);
}

TEST(CpuBackend, UnknownInstructionSetIsRefusedWithTheChoices) {
  const auto made = make_cpu_backend({1, "sse9", StreamMode::kEager});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("'sse9'"));
  EXPECT_THAT(made.error().message, HasSubstr("scalar"));
}

TEST(CpuBackend, InstructionSetThatTheMachineLacksIsRefused) {
  for (const CpuTier tier : {CpuTier::kAvx2, CpuTier::kAvx512Vnni}) {
    const std::vector<CpuTier> available = available_tiers();
    const bool there = std::find(available.begin(), available.end(), tier) != available.end();
    const auto made = make_cpu_backend({1, tier_name(tier), StreamMode::kEager});
    ASSERT_EQ(made.ok(), there);
    if (!there) {
      EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
    }
  }
}

TEST(CpuBackend, BestTierIsTheDefault) {
  auto made = make_cpu_backend({3, {}, StreamMode::kEager});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->info().device, "cpu");
  EXPECT_EQ((*made)->info().tier, tier_name(available_tiers().back()));
  EXPECT_EQ((*made)->info().num_threads, 3);
}

TEST(CpuBackend, NoThreadAndTooManyThreadsAreRefused) {
  EXPECT_FALSE(make_cpu_backend({0, {}, StreamMode::kEager}).ok());
  EXPECT_FALSE(make_cpu_backend({100000, {}, StreamMode::kEager}).ok());
}

}  // namespace
}  // namespace headrace
