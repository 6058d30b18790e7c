// 4-bit weights whose scales are kept as integers in pairs: what the arithmetic costs against exact
// scales, and that no tier, number of rows or threads changes a bit.
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

constexpr double kUlp = 0x1p-24;
constexpr DType kTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ4_K};

std::vector<int> depths(DType dtype) {
  if (dtype == DType::kQ4_K) {
    return {256, 768, 1280};
  }
  return {32, 64, 96, 288, 576, 608, 896, 1536};
}

// The tiers that have the form.
std::vector<const LinearKernels*> paired_kernels() {
  std::vector<const LinearKernels*> out;
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    if (kernels->dot_paired != nullptr) {
      out.push_back(kernels);
    }
  }
  return out;
}

std::string label(const LinearKernels& kernels, DType dtype, int k) {
  return std::string(kernels.tier) + " " + std::string(dtype_info(dtype).name) +
         " K=" + std::to_string(k);
}

// The second row of a tile, taken out of it.
struct QuantizedRow {
  std::vector<std::int8_t> codes;
  std::vector<std::int16_t> integer_scales;
  std::vector<std::int32_t> zero_terms;
  std::vector<std::int16_t> integer_sums;
  std::vector<float> units;

  QuantizedRow(const LinearKernels& kernels, const std::vector<float>& x) {
    const std::size_t pairs = (x.size() + kPair - 1) / kPair;
    const std::size_t blocks = (pairs + kPairsPerBlock - 1) / kPairsPerBlock;
    std::vector<std::int8_t> tile_codes(pairs * kPair * kTileRows, 99);
    std::vector<std::int16_t> tile_scales(pairs * 2 * kTileRows, 99);
    std::vector<std::int32_t> tile_terms(pairs * 2 * kTileRows, 99);
    std::vector<std::int16_t> tile_sums(pairs * 2 * kTileRows, 99);
    std::vector<float> tile_units(blocks * kTileRows, 99);
    kernels.quantize_paired_row(
        x.data(),
        static_cast<int>(x.size()),
        {&tile_codes[kPair], &tile_scales[2], &tile_sums[2], &tile_terms[2], &tile_units[1]});
    codes = second_of_tile(tile_codes, kPair);
    integer_scales = second_of_tile(tile_scales, 2);
    zero_terms = second_of_tile(tile_terms, 2);
    integer_sums = second_of_tile(tile_sums, 2);
    units = second_of_tile(tile_units, 1);
  }

  // Pieces of `size`, of four rows in turn; nobody else's may have been written.
  template <typename T>
  static std::vector<T> second_of_tile(const std::vector<T>& tile, std::size_t size) {
    std::vector<T> out;
    for (std::size_t i = 0; i < tile.size(); ++i) {
      if (i / size % kTileRows == 1) {
        out.push_back(tile[i]);
      } else {
        EXPECT_EQ(tile[i], 99);
      }
    }
    return out;
  }
};

TEST(QuantizePairedRow, CodesOfTwoGroupsAlternateByFour) {
  for (const LinearKernels* kernels : paired_kernels()) {
    std::vector<float> x(64);
    for (int k = 0; k < 32; ++k) {
      x[k] = static_cast<float>(k);
      x[32 + k] = static_cast<float>(-2 * k);
    }
    x[0] = 127;    // scale 1
    x[32] = -254;  // scale 2
    const QuantizedRow row(*kernels, x);
    const std::vector<int> codes(row.codes.begin(), row.codes.begin() + 16);
    EXPECT_THAT(codes,
                testing::ElementsAre(127, 1, 2, 3, -127, -1, -2, -3, 4, 5, 6, 7, -4, -5, -6, -7));
    EXPECT_EQ(row.codes[63], -31);
    EXPECT_THAT(row.integer_scales, testing::ElementsAre(16384, 32767));
    EXPECT_EQ(row.units[0], 2.0F);
    EXPECT_THAT(row.zero_terms, testing::ElementsAre(-8 * (127 + 496), 8 * (127 + 496)));
    EXPECT_THAT(row.integer_sums, testing::ElementsAre(623 * 4, -1246 * 4));
  }
}

TEST(QuantizePairedRow, EveryTierEqualsTheScalarTier) {
  for (const int dim : {32, 64, 96, 256, 288, 576, 608, 1536}) {
    std::vector<float> x = random_floats(static_cast<std::size_t>(dim), 3);
    std::fill_n(x.begin(), 32, 0.0F);  // a group of zeros
    for (int k = 64; k < dim; k += 96) {
      x[k] *= 100;
    }
    const QuantizedRow expected(scalar::linear_kernels(), x);
    for (const LinearKernels* kernels : paired_kernels()) {
      const QuantizedRow row(*kernels, x);
      EXPECT_EQ(row.codes, expected.codes) << kernels->tier << dim;
      EXPECT_EQ(row.integer_scales, expected.integer_scales) << kernels->tier << dim;
      EXPECT_EQ(row.units, expected.units) << kernels->tier << dim;
      EXPECT_EQ(row.zero_terms, expected.zero_terms) << kernels->tier << dim;
      EXPECT_EQ(row.integer_sums, expected.integer_sums) << kernels->tier << dim;
    }
  }
}

struct Expected {
  double value = 0;  // from the codes that the kernels multiply and the file's own scales
  double bound = 0;  // of what integer scales and float sums may add to it
};

// The largest of each block of eight groups.
std::vector<double> block_maxima(const std::vector<double>& of_groups) {
  std::vector<double> out((of_groups.size() + 7) / 8);
  for (std::size_t g = 0; g < of_groups.size(); ++g) {
    out[g / 8] = std::max(out[g / 8], of_groups[g]);
  }
  return out;
}

// A weight's unit may be this part of what its block's largest needs.
double unit_part(DType dtype) {
  if (dtype == DType::kQ4_K) {
    return 2.0 / kMaxIntegerScale;  // a power of two
  }
  return 1.0 / (dtype == DType::kQ4_0 ? kMaxScaleAlone : kMaxIntegerScale);
}

Expected exact_dot(const StoredMatrix& matrix, int n, const std::vector<float>& x) {
  const DType dtype = matrix.view.dtype;
  const auto k = static_cast<int>(x.size());
  const auto groups = static_cast<std::size_t>(k / kGroup);
  std::vector<std::uint8_t> codes(x.size());
  std::vector<float> scales(groups);
  std::vector<float> offsets(groups);
  const std::byte* bytes = matrix.bytes.data() + n * row_bytes(dtype, k);
  unpack_affine_row(dtype, bytes, k, codes.data(), scales.data(), offsets.data());
  std::vector<std::int8_t> row_codes(x.size());
  std::vector<float> row_scales(groups);
  std::vector<std::int32_t> sums(2 * groups);
  scalar::linear_kernels().quantize_row(
      x.data(), k, row_codes.data(), row_scales.data(), sums.data());
  std::vector<double> needed(groups);
  std::vector<double> offsets_less_8(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    offsets_less_8[g] = has_offsets(dtype) ? offsets[g] + 8 * double{scales[g]} : 0;
    needed[g] = std::max(std::fabs(double{scales[g]}), std::fabs(offsets_less_8[g]) / 8);
  }
  const std::vector<double> w_max = block_maxima(needed);
  const std::vector<double> a_max = block_maxima({row_scales.begin(), row_scales.end()});
  Expected out;
  for (std::size_t g = 0; g < groups; ++g) {
    double dot = 0;
    for (std::size_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
      dot += (codes[i] - 8) * row_codes[i];
    }
    const double sum = sums[2 * g] + sums[2 * g + 1];
    const double a = row_scales[g];
    const double main = scales[g] * a * dot;
    const double extra = offsets_less_8[g] * a * sum;
    const double unit = w_max[g / 8] * unit_part(dtype);
    out.value += main + extra;
    // Half a step each: of the weight's integers, of the row's, and of the scales' product.
    const double scale_error =
        unit * a + std::fabs(scales[g]) * a_max[g / 8] / 32768 + unit * a_max[g / 8];
    out.bound += 0.501 * scale_error * std::fabs(dot);
    if (has_offsets(dtype)) {
      out.bound += 0.501 * (8 * unit * a * std::fabs(sum) +
                            (std::fabs(offsets_less_8[g]) + 8 * unit) * a_max[g / 8] / 8);
    }
    const auto terms = static_cast<double>(groups / 8 + 8);
    out.bound += terms * kUlp * (std::fabs(main) + std::fabs(extra));
  }
  return out;
}

TEST(LinearPaired, IsWithinItsBoundOfExactScales) {
  constexpr int kN = 37;
  for (const DType dtype : kTypes) {
    for (const int k : depths(dtype)) {
      const StoredMatrix matrix(dtype, kN, k, 1);
      const std::vector<float> x = random_floats(static_cast<std::size_t>(k), 2);
      LinearBench bench(scalar::linear_kernels());
      const auto weight = bench.pack(matrix, KSplit::kWhole, ScaleForm::kPaired);
      const std::vector<float> out = bench.linear(*weight, x);
      for (int n = 0; n < kN; ++n) {
        const Expected expected = exact_dot(matrix, n, x);
        ASSERT_NEAR(out[n], expected.value, expected.bound)
            << label(scalar::linear_kernels(), dtype, k) << " column " << n;
      }
    }
  }
}

// Where a block's scales are equal, integers hold them exactly.
TEST(LinearPaired, EqualScalesAreExact) {
  for (const LinearKernels* kernels : paired_kernels()) {
    for (const int m : {1, 20}) {
      StoredMatrix matrix(DType::kQ4_0, 32, 256, 3);
      for (std::size_t block = 0; block < matrix.bytes.size(); block += 18) {
        matrix.bytes[block] = std::byte{0};
        matrix.bytes[block + 1] = std::byte{0x3C};  // 1.0
        for (std::size_t i = 2; i < 18; ++i) {
          matrix.bytes[block + i] = std::byte{0x00};  // codes of -8
        }
      }
      LinearBench bench(*kernels);
      const auto weight = bench.pack(matrix, KSplit::kWhole, ScaleForm::kPaired);
      for (const float activation : {127.0F, -127.0F}) {
        const std::vector<float> x(static_cast<std::size_t>(m) * 256, activation);
        const double wanted = -8.0 * activation * 256;
        for (const float value : bench.linear(*weight, x)) {
          ASSERT_NEAR(value, wanted, 3e-7 * std::fabs(wanted)) << kernels->tier;
        }
      }
    }
  }
}

// A block of the largest scales, codes and inputs fills 31 bits.
TEST(LinearPaired, TheLargestBlockDoesNotOverflow) {
  for (const LinearKernels* kernels : paired_kernels()) {
    for (const float sign : {1.0F, -1.0F}) {
      StoredMatrix matrix(DType::kQ4_K, 32, 512, 3);
      for (std::size_t block = 0; block < matrix.bytes.size(); block += 144) {
        std::fill_n(matrix.bytes.begin() + static_cast<std::ptrdiff_t>(block), 144, std::byte{0});
        matrix.bytes[block + 1] = std::byte{0x3C};  // d = 1, dmin = 0
        std::fill_n(
            matrix.bytes.begin() + static_cast<std::ptrdiff_t>(block) + 4, 12, std::byte{0xFF});
      }
      LinearBench bench(*kernels);
      const auto weight = bench.pack(matrix, KSplit::kWhole, ScaleForm::kPaired);
      const std::vector<float> x(std::size_t{20} * 512, sign * 100);
      for (const float value : bench.linear(*weight, x)) {
        ASSERT_NEAR(value, 0, 512 * 100.0 * 63 * 8 * 1e-4) << kernels->tier;
      }
    }
  }
}

std::vector<float> first_rows(const std::vector<float>& x, int count, int width) {
  return {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count) * width};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(LinearPaired, EveryTierEqualsTheScalarTierBitForBit) {
  for (const DType dtype : kTypes) {
    for (const int k : depths(dtype)) {
      for (const KSplit split : {KSplit::kWhole, KSplit::kFourSegments}) {
        const int n = k % 3 == 0 ? 33 : 70;
        const StoredMatrix matrix(dtype, n, k, 4);
        LinearBench reference(scalar::linear_kernels());
        const auto weight = reference.pack(matrix, split, ScaleForm::kPaired);
        const std::vector<float> x = random_floats(static_cast<std::size_t>(29) * k, 5);
        const std::vector<float> expected = reference.linear(*weight, x);
        for (const LinearKernels* kernels : paired_kernels()) {
          LinearBench bench(*kernels, 2);
          // Sums of another layer stand where segments without a k begin.
          bench.linear(*bench.pack(StoredMatrix(DType::kQ8_0, 70, 256, 4), KSplit::kFourSegments),
                       random_floats(std::size_t{29} * 256, 6));
          for (const int m : {1, 2, 3, 4, 5, 7, 12, 13, 14, 16, 29}) {
            ASSERT_TRUE(
                same_bits(bench.linear(*weight, first_rows(x, m, k)), first_rows(expected, m, n)))
                << label(*kernels, dtype, k) << " M=" << m;
          }
        }
      }
    }
  }
}

TEST(LinearPaired, RowsDependNeitherOnTheBatchNorOnTheThreads) {
  constexpr int kRows = 700;  // two blocks of rows
  constexpr int kN = 65;
  for (const DType dtype : kTypes) {
    const int k = 2304;  // several chunks, segments that begin inside a block
    const StoredMatrix matrix(dtype, kN, k, 6);
    const std::vector<float> x = random_floats(std::size_t{kRows} * k, 7);
    const LinearKernels& kernels = *paired_kernels().back();
    LinearBench one(kernels);
    const auto weight = one.pack(matrix, KSplit::kFourSegments, ScaleForm::kPaired);
    const std::vector<float> together =
        LinearBench(kernels, 3).linear(*weight, first_rows(x, 100, k));
    const std::vector<float> all =
        kernels.tier == std::string("scalar") ? together : one.linear(*weight, x);
    ASSERT_TRUE(same_bits(first_rows(all, 100, kN), together));
    for (const int row : {0, 1, 5, 50, 99}) {
      const auto begin = x.begin() + std::ptrdiff_t{row} * k;
      const std::vector<float> alone = one.linear(*weight, {begin, begin + k});
      ASSERT_EQ(
          std::memcmp(alone.data(), &all[static_cast<std::size_t>(row) * kN], kN * sizeof(float)),
          0)
          << row;
    }
  }
}

TEST(LinearPaired, GateUpAndMixedTypesShareOneInput) {
  for (const LinearKernels* kernels : paired_kernels()) {
    const StoredMatrix q(DType::kQ4_K, 40, 512, 8);
    const StoredMatrix v(DType::kQ6_K, 33, 512, 9);
    LinearBench bench(*kernels, 2);
    const auto wq = bench.pack(q, KSplit::kWhole, ScaleForm::kPaired);
    const auto wv = bench.pack(v, KSplit::kWhole, ScaleForm::kPaired);
    const std::vector<float> x = random_floats(std::size_t{30} * 512, 10);
    std::vector<float> oq(1200);
    std::vector<float> ov(990);
    const LinearOutput outputs[] = {{.weight = wq.get(), .out = oq.data()},
                                    {.weight = wv.get(), .out = ov.data()}};
    bench.driver.linear({.x = x.data(), .num_rows = 30}, outputs);
    EXPECT_TRUE(same_bits(oq, bench.linear(*wq, x)));
    EXPECT_TRUE(same_bits(ov, bench.linear(*wv, x)));
    std::vector<float> gated(1200);
    bench.driver.gated_linear(
        {.x = x.data(), .num_rows = 30}, *wq, *wq, Activation::kSilu, gated.data());
    EXPECT_NEAR(gated[7], oq[7] / (1 + std::exp(-oq[7])) * oq[7], 1e-5 * std::fabs(gated[7]));
  }
}

TEST(LinearPaired, HoldsAtMostFivePercentMoreThanTheFile) {
  for (const DType dtype : kTypes) {
    for (const int k : {576, 1536, 2048}) {
      if (k % dtype_info(dtype).block_size != 0) {
        continue;
      }
      const auto file = static_cast<double>(1536 * row_bytes(dtype, k));
      const auto packed =
          static_cast<double>(packed_weight_bytes(dtype, 1536, k, {}, ScaleForm::kPaired));
      EXPECT_LE(packed, 1.05 * file) << dtype_info(dtype).name << k;
    }
  }
}

TEST(LinearPaired, WeightsWithLookupOrTwoPlanesKeepTheFilesScales) {
  EXPECT_TRUE(can_pair_scales(DType::kQ4_0, {}));
  EXPECT_FALSE(can_pair_scales(DType::kQ4_0, {.row_lookup = true}));
  EXPECT_FALSE(can_pair_scales(DType::kQ4_0, {.input = InputRounding::kTwoPlanes}));
  EXPECT_FALSE(can_pair_scales(DType::kQ8_0, {}));
}

// Infinite scales, which a broken file may hold, give no numbers; the other outputs stay.
TEST(LinearPaired, ABrokenScaleSpoilsItsOwnOutputOnly) {
  for (const LinearKernels* kernels : paired_kernels()) {
    StoredMatrix matrix(DType::kQ4_1, 2, 64, 11);
    matrix.bytes[0] = std::byte{0x00};
    matrix.bytes[1] = std::byte{0x7C};
    LinearBench bench(*kernels);
    const auto weight = bench.pack(matrix, KSplit::kWhole, ScaleForm::kPaired);
    const std::vector<float> out = bench.linear(*weight, random_floats(64, 12));
    EXPECT_TRUE(std::isnan(out[0])) << kernels->tier;
    EXPECT_TRUE(std::isfinite(out[1])) << kernels->tier;
  }
}

}  // namespace
}  // namespace headrace
