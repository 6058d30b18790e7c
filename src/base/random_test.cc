#include "base/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers published with Random123 for philox4x32, 10 rounds.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, IsAFunctionOfSeedPositionAndDraw) {
  EXPECT_EQ(uniform(0, 0, 0),
            static_cast<float>(0x6627e8) / 16777216.0F);  // the top 24 bits of the first word
  EXPECT_EQ(uniform(5, 6, 7), uniform(5, 6, 7));
  EXPECT_NE(uniform(5, 6, 7), uniform(6, 6, 7));
  EXPECT_NE(uniform(5, 6, 7), uniform(5, 7, 7));
  EXPECT_NE(uniform(5, 6, 7), uniform(5, 6, 8));
  EXPECT_NE(uniform(1ULL << 32, 0, 0), uniform(0, 0, 0));  // all 64 bits count
  EXPECT_NE(uniform(0, 1ULL << 32, 0), uniform(0, 0, 0));
}

TEST(Uniform, LiesInTheUnitIntervalWithItsMeanAndVariance) {
  constexpr int kNum = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kNum; ++i) {
    const float value = uniform(42, static_cast<std::uint64_t>(i), 0);
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / kNum, 0.5, 0.004);          // four standard errors of 0.00091
  EXPECT_NEAR(squares / kNum, 1.0 / 3, 0.004);  // of 0.00094
}

}  // namespace
}  // namespace headrace
