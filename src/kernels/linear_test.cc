#include "kernels/cpu/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/linear_fixture.h"
#include "quant/block_formats.h"
#include "quant/dequantize.h"

namespace headrace {
namespace {

constexpr double kUlp = 0x1p-24;  // half a unit in the last place of 1.0F

std::vector<int> depths(DType dtype) {
  switch (dtype_info(dtype).block_size) {
    case 256:
      return {256, 768, 1536};
    case 32:
      return {32, 64, 576, 896, 1536};
    default:
      return {1, 7, 64, 577, 896};
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string label(const LinearKernels& kernels, DType dtype, int k) {
  return std::string(kernels.tier) + " " + std::string(dtype_info(dtype).name) +
         " K=" + std::to_string(k);
}

// Quantized rows, as every kernel sees them.
struct QuantizedRow {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
};

QuantizedRow quantize(const float* x, int k) {
  QuantizedRow row;
  row.codes.resize(static_cast<std::size_t>(k));
  row.scales.resize(static_cast<std::size_t>(k / kGroup));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(k / 16));
  scalar::linear_kernels().quantize_row(x, k, row.codes.data(), row.scales.data(), sums.data());
  return row;
}

struct Expected {
  double value = 0;
  double magnitude = 0;  // sum of the absolute values that were added
};

// One output in double, from the codes that the kernels multiply.
Expected quantized_dot(const StoredMatrix& matrix, int n, const QuantizedRow& row) {
  const DType dtype = matrix.view.dtype;
  const auto k = static_cast<int>(matrix.view.num_cols());
  const int group = group_size(dtype);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(k));
  std::vector<float> scales(static_cast<std::size_t>(k / group));
  std::vector<float> offsets(scales.size());
  unpack_affine_row(dtype,
                    matrix.bytes.data() + n * row_bytes(dtype, k),
                    k,
                    codes.data(),
                    scales.data(),
                    offsets.data());
  Expected out;
  for (int g = 0; g < k / group; ++g) {
    std::int64_t product = 0;
    std::int64_t sum = 0;
    for (int i = g * group; i < (g + 1) * group; ++i) {
      product += (codes[i] - zero_point(dtype)) * row.codes[i];
      sum += row.codes[i];
    }
    const double scale = row.scales[g * group / kGroup];
    const double main = scale * scales[g] * static_cast<double>(product);
    const double offset = has_offsets(dtype) ? scale * offsets[g] * static_cast<double>(sum) : 0;
    out.value += main + offset;
    out.magnitude += std::fabs(main) + std::fabs(offset);
  }
  return out;
}

Expected float_dot(const float* weights, const float* x, int k) {
  Expected out;
  for (int i = 0; i < k; ++i) {
    out.value += double{weights[i]} * x[i];
    out.magnitude += std::fabs(double{weights[i]} * x[i]);
  }
  return out;
}

TEST(Linear, ScalarTierIsWithinRoundingOfDouble) {
  constexpr int kN = 37;
  constexpr int kM = 3;
  for (const DType dtype : kAllDTypes) {
    for (const int k : depths(dtype)) {
      const StoredMatrix matrix(dtype, kN, k, 1);
      const std::vector<float> x = random_floats(static_cast<std::size_t>(kM) * k, 2);
      const std::vector<float> values = dequantize(matrix.view);
      LinearBench bench(scalar::linear_kernels());
      const std::vector<float> out = bench.linear(*bench.pack(matrix), x);
      for (int m = 0; m < kM; ++m) {
        for (int n = 0; n < kN; ++n) {
          const float* row = x.data() + static_cast<std::ptrdiff_t>(m) * k;
          const Expected expected =
              is_quantized(dtype)
                  ? quantized_dot(matrix, n, quantize(row, k))
                  : float_dot(values.data() + static_cast<std::ptrdiff_t>(n) * k, row, k);
          const int terms = is_quantized(dtype) ? 2 * k / group_size(dtype) : k;
          const double tolerance = (terms + 4) * kUlp * expected.magnitude;
          ASSERT_NEAR(out[m * kN + n], expected.value, tolerance)
              << label(scalar::linear_kernels(), dtype, k);
        }
      }
    }
  }
}

TEST(Linear, EveryTierEqualsTheScalarTierBitForBit) {
  constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 12, 13, 29};
  for (const DType dtype : kAllDTypes) {
    for (const int k : depths(dtype)) {
      const int n = k % 3 == 0 ? 33 : 70;
      const StoredMatrix matrix(dtype, n, k, 3);
      LinearBench reference(scalar::linear_kernels());
      const std::unique_ptr<Weight> weight = reference.pack(matrix, KSplit::kFourSegments);
      const std::vector<float> x = random_floats(static_cast<std::size_t>(29) * k, 4);
      const std::vector<float> expected = reference.linear(*weight, x);
      for (const LinearKernels* kernels : runnable_linear_kernels()) {
        LinearBench bench(*kernels, 2);
        for (const int m : kRowCounts) {
          const std::vector<float> rows(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(m) * k);
          const std::vector<float> first(expected.begin(),
                                         expected.begin() + static_cast<std::ptrdiff_t>(m) * n);
          ASSERT_TRUE(same_bits(bench.linear(*weight, rows), first))
              << label(*kernels, dtype, k) << " M=" << m;
        }
      }
    }
  }
}

TEST(Linear, RowsDependNeitherOnTheBatchNorOnTheThreads) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    for (const DType dtype : kAllDTypes) {
      const int k = dtype_info(dtype).block_size == 256 ? 1024 : 608;
      const int n = 65;
      const StoredMatrix matrix(dtype, n, k, 5);
      const std::vector<float> x = random_floats(static_cast<std::size_t>(33) * k, 6);
      std::vector<float> alone;
      for (const int threads : {1, 2, 3, 5, 16}) {
        LinearBench bench(*kernels, threads);
        const std::unique_ptr<Weight> weight = bench.pack(matrix, KSplit::kFourSegments);
        for (int row = 0; row < 33 && threads == 1; ++row) {
          const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row) * k;
          const std::vector<float> out = bench.linear(*weight, {begin, begin + k});
          alone.insert(alone.end(), out.begin(), out.end());
        }
        const bool scalar_tier = kernels == &scalar::linear_kernels();
        for (int m = 1; m <= 33; m += threads == 1 && !scalar_tier ? 1 : 8) {
          const std::vector<float> rows(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(m) * k);
          const std::vector<float> first(alone.begin(),
                                         alone.begin() + static_cast<std::ptrdiff_t>(m) * n);
          ASSERT_TRUE(same_bits(bench.linear(*weight, rows), first))
              << label(*kernels, dtype, k) << " M=" << m << " threads=" << threads;
        }
      }
    }
  }
}

TEST(Linear, BlocksOfRowsGiveTheSameBits) {
  constexpr int kM = 401;  // three blocks
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    if (kernels == &scalar::linear_kernels()) {
      continue;
    }
    for (const DType dtype : {DType::kF16, DType::kQ4_1, DType::kQ8_0, DType::kQ6_K}) {
      const int k = 1280;  // three chunks of unpacked k
      const StoredMatrix matrix(dtype, 40, k, 7);
      const std::vector<float> x = random_floats(static_cast<std::size_t>(kM) * k, 8);
      LinearBench bench(*kernels, 2);
      const std::unique_ptr<Weight> weight = bench.pack(matrix);
      const std::vector<float> all = bench.linear(*weight, x);
      for (const int row : {0, 133, 134, 135, 200, 267, 268, 400}) {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row) * k;
        const std::vector<float> out = bench.linear(*weight, {begin, begin + k});
        ASSERT_EQ(
            std::memcmp(
                out.data(), all.data() + static_cast<std::ptrdiff_t>(row) * 40, 40 * sizeof(float)),
            0)
            << label(*kernels, dtype, k) << " row " << row;
      }
    }
  }
}

// Every code of a matrix with unit scale at one extreme, every activation at another: the sum is an
// integer, exact.
TEST(Linear, ExtremeCodesAreExact) {
  constexpr int kK = 64;
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    for (const int fill : {0x00, 0xFF, 0x7F, 0x80}) {
      for (const float activation : {127.0F, -127.0F}) {
        StoredMatrix matrix(DType::kQ8_0, 32, kK, 9);
        for (std::size_t i = 0; i < matrix.bytes.size(); ++i) {
          matrix.bytes[i] = i % 34 == 0
                                ? std::byte{0x00}
                                : (i % 34 == 1 ? std::byte{0x3C} : static_cast<std::byte>(fill));
        }
        LinearBench bench(*kernels);
        const std::unique_ptr<Weight> weight = bench.pack(matrix);
        const int code = static_cast<std::int8_t>(static_cast<std::uint8_t>(fill));
        for (const int m : {1, 20}) {
          const std::vector<float> x(static_cast<std::size_t>(m) * kK, activation);
          EXPECT_THAT(bench.linear(*weight, x),
                      testing::Each(static_cast<float>(code) * activation * kK))
              << kernels->tier << " code " << code;
        }
      }
    }
  }
}

TEST(Linear, LargestCodesOfFourFiveAndSixBitsAreExact) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    for (const DType dtype :
         {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ6_K}) {
      const int k = 256;
      StoredMatrix matrix(dtype, 32, k, 10);
      const auto block = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
      for (std::size_t i = 0; i < matrix.bytes.size(); ++i) {
        matrix.bytes[i] = std::byte{0xFF};
      }
      for (std::size_t i = 0; i < matrix.bytes.size(); i += block) {
        const std::size_t d = dtype == DType::kQ6_K ? 208 : 0;
        matrix.bytes[i + d] = std::byte{0x00};
        matrix.bytes[i + d + 1] = std::byte{0x3C};  // 1.0
        if (has_offsets(dtype)) {
          matrix.bytes[i + 2] = std::byte{0x00};
          matrix.bytes[i + 3] = std::byte{0x00};  // 0.0
        }
        for (std::size_t s = 192; dtype == DType::kQ6_K && s < 208; ++s) {
          matrix.bytes[i + s] = std::byte{1};
        }
      }
      LinearBench bench(*kernels);
      const std::unique_ptr<Weight> weight = bench.pack(matrix);
      const int code = (1 << code_bits(dtype)) - 1 - zero_point(dtype);
      for (const float activation : {127.0F, -127.0F}) {
        for (const int m : {1, 20}) {
          const std::vector<float> x(static_cast<std::size_t>(m) * k, activation);
          EXPECT_THAT(bench.linear(*weight, x),
                      testing::Each(static_cast<float>(code) * activation * 256))
              << label(*kernels, dtype, k);
        }
      }
    }
  }
}

TEST(Linear, ZeroInputGivesTheBias) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    for (const DType dtype : kAllDTypes) {
      const StoredMatrix matrix(dtype, 35, 256, 11);
      LinearBench bench(*kernels);
      const std::unique_ptr<Weight> weight = bench.pack(matrix);
      const std::vector<float> x(std::size_t{2} * 256);
      const std::vector<float> bias = random_floats(35, 12);
      std::vector<float> out(70, -1.0F);
      const LinearOutput output = {.weight = weight.get(), .out = out.data(), .bias = bias.data()};
      bench.driver.linear({.x = x.data(), .num_rows = 2}, {&output, 1});
      for (int i = 0; i < 70; ++i) {
        ASSERT_EQ(out[i], bias[i % 35]) << label(*kernels, dtype, 256);
      }
    }
  }
}

// |x - scale * code| <= scale / 2 for each value, and scale = amax / 127 of its group.
TEST(Linear, QuantizingTheInputCostsAtMostItsBound) {
  constexpr int kN = 32;
  constexpr int kK = 768;
  for (const DType dtype : kAllDTypes) {
    if (!is_quantized(dtype)) {
      continue;
    }
    const StoredMatrix matrix(dtype, kN, kK, 13);
    const std::vector<float> x = random_floats(kK, 14);
    const std::vector<float> weights = dequantize(matrix.view);
    const QuantizedRow row = quantize(x.data(), kK);
    LinearBench bench(*runnable_linear_kernels().back());
    const std::vector<float> out = bench.linear(*bench.pack(matrix), x);
    for (int n = 0; n < kN; ++n) {
      const float* w = weights.data() + static_cast<std::ptrdiff_t>(n) * kK;
      const Expected exact = float_dot(w, x.data(), kK);
      double bound = (2.0 * kK / 16 + 8) * kUlp * quantized_dot(matrix, n, row).magnitude +
                     8 * kUlp * exact.magnitude;
      for (int k = 0; k < kK; ++k) {
        bound += 0.5001 * row.scales[k / kGroup] * std::fabs(w[k]);
      }
      ASSERT_LE(std::fabs(out[n] - exact.value), bound) << dtype_info(dtype).name;
    }
  }
}

TEST(Linear, OneInputFeedsOutputsOfDifferentTypes) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    const StoredMatrix q(DType::kQ4_K, 40, 512, 15);
    const StoredMatrix k(DType::kQ6_K, 33, 512, 16);
    const StoredMatrix v(DType::kF16, 7, 512, 17);
    LinearBench bench(*kernels, 2);
    const std::unique_ptr<Weight> wq = bench.pack(q);
    const std::unique_ptr<Weight> wk = bench.pack(k);
    const std::unique_ptr<Weight> wv = bench.pack(v);
    const std::vector<float> x = random_floats(std::size_t{5} * 512, 18);
    std::vector<float> oq(200);
    std::vector<float> ok(165);
    std::vector<float> ov(35);
    const LinearOutput outputs[] = {{.weight = wq.get(), .out = oq.data()},
                                    {.weight = wk.get(), .out = ok.data()},
                                    {.weight = wv.get(), .out = ov.data()}};
    bench.driver.linear({.x = x.data(), .num_rows = 5}, outputs);
    EXPECT_TRUE(same_bits(oq, bench.linear(*wq, x)));
    EXPECT_TRUE(same_bits(ok, bench.linear(*wk, x)));
    EXPECT_TRUE(same_bits(ov, bench.linear(*wv, x)));
  }
}

TEST(Linear, FourSegmentsAreAddedInPairs) {
  constexpr int kK = 160;  // five groups: segments of 1, 1, 1 and 2
  const StoredMatrix matrix(DType::kF32, 1, kK, 19);
  const std::vector<float> x = random_floats(kK, 20);
  const std::vector<float> w = dequantize(matrix.view);
  constexpr int kBorders[] = {0, 32, 64, 96, 160};
  float s[4] = {};
  for (int i = 0; i < 4; ++i) {
    for (int k = kBorders[i]; k < kBorders[i + 1]; ++k) {
      s[i] = std::fma(x[k], w[k], s[i]);
    }
  }
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    LinearBench bench(*kernels);
    EXPECT_EQ(bench.linear(*bench.pack(matrix, KSplit::kFourSegments), x)[0],
              (s[0] + s[1]) + (s[2] + s[3]));
  }
}

TEST(Linear, ResidualIsAddedToWhatStandsInOut) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    const StoredMatrix matrix(DType::kQ8_0, 45, 96, 21);
    LinearBench bench(*kernels);
    const std::unique_ptr<Weight> weight = bench.pack(matrix);
    const std::vector<float> x = random_floats(std::size_t{3} * 96, 22);
    const std::vector<float> product = bench.linear(*weight, x);
    const std::vector<float> before = random_floats(product.size(), 23);
    const std::vector<float> bias = random_floats(45, 24);
    std::vector<float> out = before;
    const LinearOutput output = {
        .weight = weight.get(), .out = out.data(), .bias = bias.data(), .add_to_out = true};
    bench.driver.linear({.x = x.data(), .num_rows = 3}, {&output, 1});
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], before[i] + (product[i] + bias[i % 45]));
    }
  }
}

}  // namespace
}  // namespace headrace
