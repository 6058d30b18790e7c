#include "quant/dequantize.h"

#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

#include "quant/block_formats.h"

namespace headrace {
namespace {

// Blocks and the floats they mean, computed by the gguf Python package
// (scripts/golden/make_quant_vectors.py).
struct Vectors {
  std::vector<std::byte> blocks;
  std::vector<float> values;
};

Vectors read_vectors(std::string_view type) {
  std::ifstream file(fmt::format("{}/quant/{}.bin", HEADRACE_TEST_DATA, type), std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "HRQV", 4) != 0) {
    return {};
  }
  std::array<std::uint32_t, 2> counts{};
  std::memcpy(counts.data(), bytes.data() + 4, 8);
  Vectors vectors{std::vector<std::byte>(counts[1]), std::vector<float>(counts[0])};
  if (bytes.size() != 12 + vectors.blocks.size() + vectors.values.size() * sizeof(float)) {
    return {};
  }
  std::memcpy(vectors.blocks.data(), bytes.data() + 12, vectors.blocks.size());
  std::memcpy(vectors.values.data(),
              bytes.data() + 12 + vectors.blocks.size(),
              vectors.values.size() * sizeof(float));
  return vectors;
}

class EveryType : public testing::TestWithParam<int> {
 protected:
  DType dtype() const { return static_cast<DType>(GetParam()); }
};

std::string type_name(const testing::TestParamInfo<int>& info) {
  return std::string(dtype_info(static_cast<DType>(info.param)).name);
}

INSTANTIATE_TEST_SUITE_P(Dequantize, EveryType, testing::Range(0, kNumDTypes), type_name);

TEST_P(EveryType, EqualsTheIndependentImplementationBitForBit) {
  const Vectors vectors = read_vectors(dtype_info(dtype()).name);
  ASSERT_GE(vectors.values.size(), 64U);
  const auto n = static_cast<std::int64_t>(vectors.values.size());
  ASSERT_EQ(row_bytes(dtype(), n), static_cast<std::int64_t>(vectors.blocks.size()));
  std::vector<float> values(vectors.values.size(), -1.0F);
  dequantize_row(dtype(), vectors.blocks.data(), values.data(), n);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]),
              std::bit_cast<std::uint32_t>(vectors.values[i]))
        << "value " << i << ": " << values[i] << " for " << vectors.values[i];
  }
}

TEST_P(EveryType, NeedsNoAlignment) {
  const Vectors vectors = read_vectors(dtype_info(dtype()).name);
  const auto n = static_cast<std::int64_t>(vectors.values.size());
  std::vector<std::byte> shifted(vectors.blocks.size() + 1);
  std::copy(vectors.blocks.begin(), vectors.blocks.end(), shifted.begin() + 1);
  std::vector<float> values(vectors.values.size());
  dequantize_row(dtype(), shifted.data() + 1, values.data(), n);
  EXPECT_EQ(std::memcmp(values.data(), vectors.values.data(), values.size() * sizeof(float)), 0);
}

TEST(Dequantize, ATensorIsItsRowsOneAfterTheOther) {
  // Two rows of one Q8_0 block: scales 1 and 2 (halves 0x3C00, 0x4000), values 0..31 and 0..-31.
  std::vector<std::byte> bytes(68);
  bytes[1] = std::byte{0x3C};
  bytes[35] = std::byte{0x40};
  for (int i = 0; i < 32; ++i) {
    bytes[2 + i] = static_cast<std::byte>(i);
    bytes[36 + i] = static_cast<std::byte>(-i);
  }
  const std::vector<float> values = dequantize({"w", DType::kQ8_0, {2, 32}, bytes});
  ASSERT_EQ(values.size(), 64U);
  EXPECT_EQ(values[0], 0.0F);
  EXPECT_EQ(values[31], 31.0F);
  EXPECT_EQ(values[33], -2.0F);
  EXPECT_EQ(values[63], -62.0F);
}

}  // namespace
}  // namespace headrace
