#include "tensor/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace headrace {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// IEEE 754's definition, in double arithmetic, where every half is exact.
double value_by_definition(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half >> 15 == 0 ? magnitude : -magnitude;
}

bool is_finite_half(std::uint16_t half) { return (half >> 10 & 31) != 31; }

TEST(Half, EveryHalfHasItsDefinedValue) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float value = f16_to_f32(half);
    if (is_finite_half(half)) {
      ASSERT_EQ(static_cast<double>(value), value_by_definition(half)) << i;
      ASSERT_EQ(std::signbit(value), half >> 15 == 1) << i;
    } else if ((half & 1023) == 0) {
      ASSERT_TRUE(std::isinf(value)) << i;
      ASSERT_EQ(std::signbit(value), half >> 15 == 1) << i;
    } else {
      ASSERT_TRUE(std::isnan(value)) << i;
    }
  }
}

TEST(Half, EveryHalfComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const std::uint16_t back = f32_to_f16(f16_to_f32(half));
    if (std::isnan(f16_to_f32(half))) {
      ASSERT_EQ(back, half | 0x200) << i;  // a quiet NaN
    } else {
      ASSERT_EQ(back, half) << i;
    }
  }
}

TEST(Half, BetweenNeighboursTheNearerIsTakenAndATieIsEven) {
  for (std::uint32_t i = 0; i < 0x7BFF; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const auto middle =
        static_cast<float>((value_by_definition(low) + value_by_definition(high)) / 2);  // exact
    ASSERT_EQ(f32_to_f16(middle), i % 2 == 0 ? low : high) << i;
    ASSERT_EQ(f32_to_f16(std::nextafterf(middle, 0.0F)), low) << i;
    ASSERT_EQ(f32_to_f16(std::nextafterf(middle, 1e9F)), high) << i;
    ASSERT_EQ(f32_to_f16(-middle), 0x8000 | (i % 2 == 0 ? low : high)) << i;
  }
}

TEST(Half, LargeValuesBecomeInfinite) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7C00);
}

TEST(Half, SmallValuesBecomeZeroOfTheirSign) {
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000);  // half of the smallest subnormal, to even
  EXPECT_EQ(f32_to_f16(0x1.000002p-25F), 0x0001);
  EXPECT_EQ(f32_to_f16(-1e-30F), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
}

TEST(Half, ANanStaysOne) {
  const std::uint16_t half = f32_to_f16(std::numeric_limits<float>::signaling_NaN());
  EXPECT_EQ(half & 0x7E00, 0x7E00);
  // A payload only in the bits that fall away must not turn a NaN into an infinity.
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0x7F800001U)) & 0x7E00, 0x7E00);
}

TEST(Half, Bfloat16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(bits(bf16_to_f32(0x3F80)), bits(1.0F));
  EXPECT_EQ(bits(bf16_to_f32(0xC2F7)), 0xC2F70000U);
  EXPECT_TRUE(std::isinf(bf16_to_f32(0x7F80)));
  EXPECT_TRUE(std::isnan(bf16_to_f32(0x7FC0)));
}

}  // namespace
}  // namespace headrace
