#include "quant/block_formats.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "quant/dequantize.h"

namespace headrace {
namespace {

constexpr std::array kQuantizedTypes = {DType::kQ4_0,
                                        DType::kQ4_1,
                                        DType::kQ5_0,
                                        DType::kQ5_1,
                                        DType::kQ8_0,
                                        DType::kQ4_K,
                                        DType::kQ5_K,
                                        DType::kQ6_K};
constexpr std::int64_t kRow = 1024;

// A row of random bytes. Exponents of the halves are kept finite by clearing their top bit.
std::vector<std::byte> random_row(DType dtype, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(dtype, kRow)));
  for (std::byte& byte : row) {
    byte = static_cast<std::byte>(engine() & 0xFFU);
  }
  const DTypeInfo& info = dtype_info(dtype);
  for (std::size_t block = 0; block < row.size();
       block += static_cast<std::size_t>(info.block_bytes)) {
    for (const int at : {1, 3}) {
      row[block + (dtype == DType::kQ6_K ? 209 : at)] &= std::byte{0xBF};
    }
  }
  return row;
}

struct Unpacked {
  explicit Unpacked(DType dtype)
      : codes(kRow), scales(kRow / group_size(dtype)), offsets(kRow / group_size(dtype), 777.0F) {}
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  std::vector<float> offsets;
};

Unpacked unpack(DType dtype, const std::vector<std::byte>& row) {
  Unpacked out(dtype);
  unpack_affine_row(
      dtype, row.data(), kRow, out.codes.data(), out.scales.data(), out.offsets.data());
  return out;
}

TEST(BlockFormats, CodeScaleAndOffsetGiveTheValue) {
  for (const DType dtype : kQuantizedTypes) {
    const std::vector<std::byte> row = random_row(dtype, 1);
    const Unpacked u = unpack(dtype, row);
    std::vector<float> values(kRow);
    dequantize_row(dtype, row.data(), values.data(), kRow);
    for (std::int64_t i = 0; i < kRow; ++i) {
      const std::int64_t group = i / group_size(dtype);
      const float product = u.scales[group] * static_cast<float>(u.codes[i] - zero_point(dtype));
      const float value = has_offsets(dtype) ? product + u.offsets[group] : product;
      ASSERT_EQ(value, values[i]) << dtype_info(dtype).name << " value " << i;
    }
  }
}

TEST(BlockFormats, CodesUseTheirBitsAndNoMore) {
  for (const DType dtype : kQuantizedTypes) {
    const Unpacked u = unpack(dtype, random_row(dtype, 2));
    const auto [low, high] = std::minmax_element(u.codes.begin(), u.codes.end());
    EXPECT_LE(*low, 1) << dtype_info(dtype).name;
    EXPECT_LT(*high, 1 << code_bits(dtype)) << dtype_info(dtype).name;
    EXPECT_GE(*high, (1 << code_bits(dtype)) - 2) << dtype_info(dtype).name;
  }
}

TEST(BlockFormats, SymmetricTypesLeaveOffsetsAlone) {
  for (const DType dtype : kQuantizedTypes) {
    const Unpacked u = unpack(dtype, random_row(dtype, 3));
    const bool untouched = std::all_of(
        u.offsets.begin(), u.offsets.end(), [](float offset) { return offset == 777.0F; });
    EXPECT_EQ(untouched, !has_offsets(dtype)) << dtype_info(dtype).name;
    EXPECT_EQ(zero_point(dtype) == 0, has_offsets(dtype)) << dtype_info(dtype).name;
  }
}

TEST(BlockFormats, CodesAloneAreTheSameCodes) {
  for (const DType dtype : kQuantizedTypes) {
    const std::vector<std::byte> row = random_row(dtype, 4);
    std::vector<std::uint8_t> codes(kRow);
    unpack_codes_row(dtype, row.data(), kRow, codes.data());
    EXPECT_EQ(codes, unpack(dtype, row).codes) << dtype_info(dtype).name;
  }
}

TEST(BlockFormats, IntegerScalesTimesTheBlockScaleAreTheScales) {
  for (const DType dtype : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const std::vector<std::byte> row = random_row(dtype, 5);
    const Unpacked u = unpack(dtype, row);
    std::vector<float> block_scales(kRow / 256);
    std::vector<float> block_mins(kRow / 256);
    std::vector<std::int8_t> scales(u.scales.size());
    std::vector<std::uint8_t> mins(u.scales.size());
    unpack_integer_scales_row(dtype,
                              row.data(),
                              kRow,
                              {block_scales.data(), scales.data(), block_mins.data(), mins.data()});
    const std::size_t groups_per_block = 256 / group_size(dtype);
    for (std::size_t g = 0; g < u.scales.size(); ++g) {
      const std::size_t block = g / groups_per_block;
      ASSERT_EQ(u.scales[g], block_scales[block] * static_cast<float>(scales[g]))
          << dtype_info(dtype).name;
      if (has_offsets(dtype)) {
        ASSERT_EQ(u.offsets[g], -(block_mins[block] * static_cast<float>(mins[g])))
            << dtype_info(dtype).name;
        ASSERT_LT(mins[g], 64);
        ASSERT_GE(scales[g], 0);
      }
    }
  }
}

TEST(BlockFormats, Q4_0HoldsTheFirstHalfInLowNibbles) {
  std::array<std::byte, 18> block{};
  block[1] = std::byte{0x3C};  // scale 1
  block[2] = std::byte{0xF1};
  std::array<std::uint8_t, 32> codes{};
  float scale = 0.0F;
  unpack_affine_row(DType::kQ4_0, block.data(), 32, codes.data(), &scale, nullptr);
  EXPECT_EQ(scale, 1.0F);
  EXPECT_EQ(codes[0], 1);
  EXPECT_EQ(codes[16], 15);
  EXPECT_EQ(codes[1], 0);
}

TEST(BlockFormats, Q8_0CodesAreSignedBytesPlus128) {
  std::array<std::byte, 34> block{};
  block[2] = std::byte{0x80};  // -128
  block[3] = std::byte{0xFF};  // -1
  block[4] = std::byte{0x7F};  // 127
  std::array<std::uint8_t, 32> codes{};
  unpack_codes_row(DType::kQ8_0, block.data(), 32, codes.data());
  EXPECT_EQ(codes[0], 0);
  EXPECT_EQ(codes[1], 127);
  EXPECT_EQ(codes[2], 255);
  EXPECT_EQ(codes[3], 128);
}

}  // namespace
}  // namespace headrace
