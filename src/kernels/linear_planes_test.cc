// Weights whose input is rounded to two planes of eight bits: closer, and as independent of tier,
// batch and threads as with one.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "kernels/linear_fixture.h"
#include "quant/dequantize.h"

namespace headrace {
namespace {

constexpr DType kTypes[] = {DType::kQ4_1, DType::kQ5_0, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K};
constexpr int kN = 70;
constexpr int kK = 512;

std::unique_ptr<Weight> pack_two_planes(LinearBench& bench, const StoredMatrix& matrix) {
  auto packed =
      pack_weight(matrix.view, {.input = InputRounding::kTwoPlanes}, bench.pool, bench.counters);
  EXPECT_TRUE(packed.ok());
  return *std::move(packed);
}

std::vector<float> answer(const LinearKernels& kernels,
                          int num_threads,
                          const StoredMatrix& matrix,
                          const std::vector<float>& x) {
  LinearBench bench(kernels, num_threads);
  return bench.linear(*pack_two_planes(bench, matrix), x);
}

bool same_bits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

TEST(LinearPlanes, TheErrorIsThatOfFifteenBits) {
  for (const DType dtype : kTypes) {
    const StoredMatrix matrix(dtype, kN, kK, 3);
    const std::vector<float> x = random_floats(kK, 4);
    const std::vector<float> w = dequantize(matrix.view);
    const std::vector<float> out = answer(*runnable_linear_kernels().back(), 1, matrix, x);
    for (int n = 0; n < kN; ++n) {
      double exact = 0;
      double bound = 0;
      for (int g = 0; g < kK / 32; ++g) {
        double largest = 0;
        for (int k = g * 32; k < (g + 1) * 32; ++k) {
          largest = std::max(largest, std::fabs(double{x[k]}));
        }
        for (int k = g * 32; k < (g + 1) * 32; ++k) {
          const double weight = w[n * kK + k];
          exact += weight * x[k];
          // Half a step of the second plane, whose largest value is half a step of the first; and
          // what float sums lose.
          bound += std::fabs(weight) * (0.5001 * largest / 127 / 254 + 400 * 0x1p-24 * largest);
        }
      }
      ASSERT_LE(std::fabs(out[n] - exact), bound) << dtype_info(dtype).name << " column " << n;
    }
  }
}

TEST(LinearPlanes, EveryTierEqualsTheScalarTierBitForBit) {
  for (const DType dtype : kTypes) {
    const StoredMatrix matrix(dtype, kN, kK, 5);
    const std::vector<float> x = random_floats(std::size_t{5} * kK, 6);
    const std::vector<float> wanted = answer(*runnable_linear_kernels().front(), 1, matrix, x);
    for (const LinearKernels* kernels : runnable_linear_kernels()) {
      const std::vector<float> out = answer(*kernels, 2, matrix, x);
      ASSERT_TRUE(same_bits(out.data(), wanted.data(), wanted.size()))
          << kernels->tier << " " << dtype_info(dtype).name;
    }
  }
}

TEST(LinearPlanes, RowsDependNeitherOnTheBatchNorOnTheThreads) {
  constexpr int kRows = 230;  // more than one block of rows
  const StoredMatrix matrix(DType::kQ8_0, kN, kK, 7);
  const std::vector<float> x = random_floats(std::size_t{kRows} * kK, 8);
  const LinearKernels& kernels = *runnable_linear_kernels().back();
  const std::vector<float> together = answer(kernels, 1, matrix, x);
  for (const int num_threads : {2, 3, 16}) {
    const std::vector<float> out = answer(kernels, num_threads, matrix, x);
    ASSERT_TRUE(same_bits(out.data(), together.data(), out.size())) << num_threads;
  }
  for (const int row : {0, 1, 95, 96, 191, 229}) {
    const std::vector<float> alone(x.begin() + row * kK, x.begin() + (row + 1) * kK);
    const std::vector<float> out = answer(kernels, 1, matrix, alone);
    ASSERT_TRUE(same_bits(out.data(), together.data() + row * kN, kN)) << row;
  }
}

TEST(LinearPlanes, FloatWeightsTakeTheirInputAsItIs) {
  const StoredMatrix matrix(DType::kF16, kN, kK, 9);
  const std::vector<float> x = random_floats(kK, 10);
  LinearBench bench(*runnable_linear_kernels().back());
  const std::vector<float> plain = bench.linear(*bench.pack(matrix), x);
  const std::vector<float> two = bench.linear(*pack_two_planes(bench, matrix), x);
  EXPECT_TRUE(same_bits(plain.data(), two.data(), plain.size()));
}

}  // namespace
}  // namespace headrace
