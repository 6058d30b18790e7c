#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/linear.h"
#include "kernels/linear_fixture.h"

namespace headrace {
namespace {

using testing::ElementsAre;

// gate is the identity and up gives 1 for each output, so that the layer shows its activation of
// every input value.
std::vector<float> gated_identity(const LinearKernels& kernels,
                                  Activation activation,
                                  const std::vector<float>& gate_x) {
  const int dim = static_cast<int>(gate_x.size());
  StoredMatrix gate(DType::kF32, dim, dim, 1);
  StoredMatrix up(DType::kF32, dim, dim, 1);
  std::memset(gate.bytes.data(), 0, gate.bytes.size());
  std::memset(up.bytes.data(), 0, up.bytes.size());
  for (int i = 0; i < dim; ++i) {
    const float inverse = gate_x[i] == 0 ? 0.0F : 1.0F / gate_x[i];
    const float one = 1;
    const std::size_t at = static_cast<std::size_t>(i) * (dim + 1) * sizeof(float);
    std::memcpy(&gate.bytes[at], &one, sizeof(one));
    std::memcpy(&up.bytes[at], &inverse, sizeof(inverse));
  }
  LinearBench bench(kernels);
  std::vector<float> out(gate_x.size());
  bench.driver.gated_linear({.x = gate_x.data(), .num_rows = 1},
                            *bench.pack(gate),
                            *bench.pack(up),
                            activation,
                            out.data());
  return out;
}

std::vector<float> activation_inputs() {
  std::vector<float> x;
  for (float value = -12; value <= 12; value += 0.37F) {
    x.push_back(value);
  }
  x.push_back(1e-4F);
  x.push_back(60);
  return x;
}

TEST(GatedLinear, SiluIsAccurate) {
  const std::vector<float> x = activation_inputs();
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    const std::vector<float> out = gated_identity(*kernels, Activation::kSilu, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = x[i] / (1 + std::exp(-double{x[i]}));
      EXPECT_NEAR(out[i], expected, 1e-6 * std::fabs(expected)) << kernels->tier << " x=" << x[i];
    }
  }
}

TEST(GatedLinear, GeluTanhIsAccurate) {
  const std::vector<float> x = activation_inputs();
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    const std::vector<float> out = gated_identity(*kernels, Activation::kGeluTanh, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      const double y = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
      const double expected = v / (1 + std::exp(-2 * y));  // 0.5 v (1 + tanh(y))
      // The exponent is rounded in float: an error of |2 y| 2^-23 or so in its power.
      EXPECT_NEAR(out[i], expected, (1e-6 + std::fabs(2 * y) * 3e-7) * std::fabs(expected) + 1e-36)
          << kernels->tier << " x=" << v;
    }
  }
}

TEST(GatedLinear, EveryTierEqualsTheScalarTierBitForBit) {
  const StoredMatrix gate(DType::kQ4_K, 71, 512, 2);
  const StoredMatrix up(DType::kQ6_K, 71, 512, 3);
  const std::vector<float> x = random_floats(std::size_t{17} * 512, 4);
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
    std::vector<float> expected;
    for (const LinearKernels* kernels : runnable_linear_kernels()) {
      LinearBench bench(*kernels, 2);
      const std::unique_ptr<Weight> gate_weight = bench.pack(gate);
      const std::unique_ptr<Weight> up_weight = bench.pack(up);
      std::vector<float> out(std::size_t{17} * 71);
      bench.driver.gated_linear(
          {.x = x.data(), .num_rows = 17}, *gate_weight, *up_weight, activation, out.data());
      if (expected.empty()) {
        expected = out;
      }
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
          << kernels->tier;
    }
  }
}

TEST(QuantizeRow, RoundsTiesToEven) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    std::vector<float> x(32);
    x[0] = 127;  // scale 1
    x[1] = 0.5F;
    x[2] = 1.5F;
    x[3] = -2.5F;
    x[4] = -127;
    x[17] = 100.49F;
    std::vector<std::int8_t> codes(32);
    float scale = 0;
    std::int32_t sums[2] = {};
    kernels->quantize_row(x.data(), 32, codes.data(), &scale, sums);
    EXPECT_EQ(scale, 1.0F);
    EXPECT_THAT(std::vector<int>(codes.begin(), codes.begin() + 5),
                ElementsAre(127, 0, 2, -2, -127));
    EXPECT_EQ(codes[17], 100);
    EXPECT_THAT(sums, ElementsAre(0, 100));
  }
}

TEST(QuantizeRow, ZeroAndTinyGroupsAreZero) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    std::vector<float> x(64);
    x[40] = 1e-31F;
    std::vector<std::int8_t> codes(64, 1);
    std::vector<float> scales(2, 1.0F);
    std::vector<std::int32_t> sums(4, 1);
    kernels->quantize_row(x.data(), 64, codes.data(), scales.data(), sums.data());
    EXPECT_THAT(codes, testing::Each(0));
    EXPECT_THAT(scales, testing::Each(0.0F));
    EXPECT_THAT(sums, testing::Each(0));
  }
}

TEST(NormalizeRow, EveryTierEqualsTheScalarTierBitForBit) {
  for (const int dim : {1, 7, 15, 16, 17, 64, 576, 577, 896, 1000}) {
    const std::vector<float> x = random_floats(static_cast<std::size_t>(dim), 5);
    const std::vector<float> w = random_floats(static_cast<std::size_t>(dim), 6);
    std::vector<float> expected(x.size());
    scalar::linear_kernels().normalize_row(x.data(), w.data(), 1e-5F, dim, expected.data());
    double squares = 0;
    for (const float value : x) {
      squares += double{value} * value;
    }
    const double rms = std::sqrt(squares / dim + 1e-5);
    for (int k = 0; k < dim; ++k) {
      ASSERT_NEAR(expected[k], x[k] / rms * w[k], 1e-6 * std::fabs(expected[k]));
    }
    for (const LinearKernels* kernels : runnable_linear_kernels()) {
      std::vector<float> y(x.size(), -1.0F);
      kernels->normalize_row(x.data(), w.data(), 1e-5F, dim, y.data());
      EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
          << kernels->tier << " " << dim;
    }
  }
}

TEST(Linear, NormalizesItsInputWhereAsked) {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    for (const DType dtype : {DType::kF32, DType::kQ4_1}) {
      const StoredMatrix matrix(dtype, 50, 576, 7);
      LinearBench bench(*kernels, 2);
      const std::unique_ptr<Weight> weight = bench.pack(matrix);
      const std::vector<float> x = random_floats(std::size_t{20} * 576, 8);
      const std::vector<float> w = random_floats(576, 9);
      std::vector<float> normalized(x.size());
      for (std::size_t row = 0; row < 20; ++row) {
        kernels->normalize_row(&x[row * 576], w.data(), 1e-6F, 576, &normalized[row * 576]);
      }
      const std::vector<float> expected = bench.linear(*weight, normalized);
      std::vector<float> out(expected.size());
      const LinearOutput output = {.weight = weight.get(), .out = out.data()};
      bench.driver.linear(
          {.x = x.data(), .num_rows = 20, .norm_weight = w.data(), .norm_eps = 1e-6F},
          {&output, 1});
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
          << kernels->tier;
    }
  }
}

}  // namespace
}  // namespace headrace
