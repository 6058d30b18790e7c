// The small operations of the CPU backend, its memory and its stream.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <span>
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

double inverse_rms(const double* x, int dim, float eps) {
  double squares = 0;
  for (int i = 0; i < dim; ++i) {
    squares += x[i] * x[i];
  }
  return 1 / std::sqrt(squares / dim + static_cast<double>(eps));
}

void expect_rms_norm(Backend& backend, int dim, bool add) {
  constexpr int kRows = 3;
  const std::vector<float> y = values(static_cast<std::size_t>(dim) * kRows, 1);
  const std::vector<float> weight = values(dim, 2);
  const std::vector<float> before = values(y.size(), 3);
  std::vector<float> out = before;
  backend.rms_norm(y.data(), weight.data(), 1e-5F, kRows, dim, add, out.data());
  backend.synchronize();
  const std::vector<double> exact(y.begin(), y.end());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t row = i / dim;
    const double factor = inverse_rms(&exact[row * dim], dim, 1e-5F);
    const double expected = exact[i] * factor * weight[i % dim] + (add ? before[i] : 0.0F);
    // dim / 32 additions a lane and a few roundings, relative to values of at most 1 / rms
    ASSERT_NEAR(out[i], expected, 0x1p-24 * (dim / 32.0 + 16) * (factor + 2)) << dim;
  }
}

TEST_P(Ops, RmsNormMatchesFloat64AtEveryTail) {
  const auto backend = make(GetParam(), 2);
  for (const int dim : {1, 15, 16, 17, 33, 64, 576, 2048}) {
    expect_rms_norm(*backend, dim, false);
    expect_rms_norm(*backend, dim, true);
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
  std::vector<float> inv_freq(32);
  for (int i = 0; i < 32; ++i) {
    inv_freq[i] = static_cast<float>(std::pow(100000.0, -i / 32.0));
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
                           std::span<const float> heads,
                           const float* cos_sin,
                           const std::vector<float>& norm) {
  std::vector<double> out(heads.begin(), heads.end());
  const int half = shape.rotary_dim / 2;
  for (std::size_t first = 0; first < out.size(); first += shape.head_dim) {
    double* x = &out[first];
    if (shape.norm) {
      const double factor = inverse_rms(x, shape.head_dim, 1e-6F);
      for (int i = 0; i < shape.head_dim; ++i) {
        x[i] *= norm[i] * factor;
      }
    }
    const bool halves = shape.style == RopeStyle::kHalves;
    for (int i = 0; i < half; ++i) {
      const std::size_t a_idx = halves ? i : std::size_t{2} * i;
      const std::size_t b_idx = halves ? i + half : a_idx + 1;
      const double a = x[a_idx];
      const double b = x[b_idx];
      x[a_idx] = a * cos_sin[i] - b * cos_sin[half + i];
      x[b_idx] = b * cos_sin[i] + a * cos_sin[half + i];
    }
  }
  return out;
}

// Five rows of three query heads and one KV head, appended to slots of blocks 1 and 2.
class RopeRun {
 public:
  static constexpr std::size_t kRows = 5;
  static constexpr std::size_t kHeads = 3;

  RopeRun(Backend& backend, const RopeCase& shape)
      : shape_(shape), dim_(shape.head_dim), table_(kRows * shape.rotary_dim) {
    const std::vector<std::int32_t> positions = {3, 900, 17, 0, 5000};
    const std::vector<float> inv_freq = values(shape.rotary_dim / 2, 10);
    backend.rope_table({positions.data(), kRows, inv_freq.data(), shape.rotary_dim, 1},
                       table_.data());
    const std::size_t block_bytes = backend.kv_block_bytes(KvType::kF32, 1, shape.head_dim);
    cache_ = allocate(backend, 3 * block_bytes, MemoryPart::kKv);
    std::vector<float> k = k_;
    RopeAppendArgs args;
    args.q = turned_q_.data();
    args.k = k.data();
    args.v = v_.data();
    args.num_rows = kRows;
    args.num_heads = kHeads;
    args.cos_sin = table_.data();
    args.rotary_dim = shape.rotary_dim;
    args.style = shape.style;
    args.q_norm = shape.norm ? norm_.data() : nullptr;
    args.k_norm = args.q_norm;
    args.norm_eps = 1e-6F;
    args.slots = slots_.data();
    args.kv = {
        cache_.as<>(), static_cast<std::int64_t>(block_bytes), KvType::kF32, 1, shape.head_dim};
    backend.rope_append(args);
    backend.synchronize();
  }

  void expect_queries_turned(std::size_t row) const {
    const std::size_t first = row * kHeads * dim_;
    const std::vector<double> expected =
        turned(shape_, std::span(q_).subspan(first, kHeads * dim_), angles(row), norm_);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(turned_q_[first + i], expected[i], 4e-6);
    }
  }

  void expect_cached(std::size_t row) const {
    const std::vector<double> expected =
        turned(shape_, std::span(k_).subspan(row * dim_, dim_), angles(row), norm_);
    const auto* block =
        cache_.as<const float>() + static_cast<std::size_t>(slots_[row] / 16) * 32 * dim_;
    const auto offset = static_cast<std::size_t>(slots_[row] % 16);
    for (std::size_t d = 0; d < dim_; ++d) {
      ASSERT_NEAR(block[d * 16 + offset], expected[d], 4e-6);
      ASSERT_EQ(block[16 * dim_ + offset * dim_ + d], v_[row * dim_ + d]);
    }
  }

  // Nobody's slot is there.
  float first_of_block_0() const { return cache_.as<const float>()[0]; }

 private:
  const float* angles(std::size_t row) const { return &table_[row * shape_.rotary_dim]; }

  RopeCase shape_;
  std::size_t dim_;
  std::vector<float> table_;
  std::vector<float> q_ = values(kRows * kHeads * dim_, 6);
  std::vector<float> turned_q_ = q_;
  std::vector<float> k_ = values(kRows * dim_, 7);
  std::vector<float> v_ = values(kRows * dim_, 8);
  std::vector<float> norm_ = values(dim_, 9);
  std::vector<std::int32_t> slots_ = {16, 17, 40, 31, 33};
  Buffer cache_;
};

TEST_P(Ops, RopeAppendNormalizesTurnsAndCachesHeads) {
  for (const RopeCase& shape : {RopeCase{RopeStyle::kHalves, 64, 64, false},
                                RopeCase{RopeStyle::kInterleaved, 64, 64, false},
                                RopeCase{RopeStyle::kHalves, 16, 16, true},
                                RopeCase{RopeStyle::kHalves, 256, 256, true},
                                RopeCase{RopeStyle::kHalves, 80, 32, false},
                                RopeCase{RopeStyle::kInterleaved, 128, 48, true}}) {
    const auto backend = make(GetParam(), 2);
    const RopeRun run(*backend, shape);
    for (std::size_t row = 0; row < RopeRun::kRows; ++row) {
      run.expect_queries_turned(row);
      run.expect_cached(row);
    }
    EXPECT_EQ(run.first_of_block_0(), 0.0F);
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
