#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include "tensor/view.h"

namespace headrace {
namespace {

TEST(DType, EveryTypeIsFoundByItsNameAndItsNumber) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeInfo& info = dtype_info(dtype);
    EXPECT_EQ(info.dtype, dtype);
    EXPECT_EQ(dtype_from_name(info.name), dtype);
    EXPECT_EQ(dtype_from_gguf(info.gguf_id), dtype);
  }
}

TEST(DType, UnknownNamesAndNumbersAreNone) {
  EXPECT_EQ(dtype_from_name("q4_k"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
  EXPECT_EQ(dtype_from_gguf(10), std::nullopt);  // Q2_K
  EXPECT_EQ(dtype_from_gguf(0xFFFFFFFFU), std::nullopt);
}

TEST(DType, RowsTakeTheBytesOfTheirBlocks) {
  EXPECT_EQ(row_bytes(DType::kF32, 3), 12);
  EXPECT_EQ(row_bytes(DType::kF16, 3), 6);
  EXPECT_EQ(row_bytes(DType::kBF16, 3), 6);
  EXPECT_EQ(row_bytes(DType::kQ4_0, 64), 36);
  EXPECT_EQ(row_bytes(DType::kQ4_1, 64), 40);
  EXPECT_EQ(row_bytes(DType::kQ5_0, 64), 44);
  EXPECT_EQ(row_bytes(DType::kQ5_1, 64), 48);
  EXPECT_EQ(row_bytes(DType::kQ8_0, 64), 68);
  EXPECT_EQ(row_bytes(DType::kQ4_K, 512), 288);
  EXPECT_EQ(row_bytes(DType::kQ5_K, 512), 352);
  EXPECT_EQ(row_bytes(DType::kQ6_K, 512), 420);
  EXPECT_EQ(row_bytes(DType::kQ6_K, std::int64_t{1} << 40), (std::int64_t{1} << 32) * 210);
}

TEST(DType, OnlyBlockTypesAreQuantized) {
  EXPECT_FALSE(is_quantized(DType::kF32));
  EXPECT_FALSE(is_quantized(DType::kF16));
  EXPECT_FALSE(is_quantized(DType::kBF16));
  EXPECT_TRUE(is_quantized(DType::kQ4_0));
  EXPECT_TRUE(is_quantized(DType::kQ6_K));
}

TEST(TensorView, RowsAndColumnsComeFromTheShape) {
  EXPECT_EQ((TensorView{"w", DType::kF32, {2, 3, 4}, {}}.num_rows()), 6);
  EXPECT_EQ((TensorView{"w", DType::kF32, {2, 3, 4}, {}}.num_cols()), 4);
  EXPECT_EQ((TensorView{"v", DType::kF32, {5}, {}}.num_rows()), 1);
  EXPECT_EQ((TensorView{"s", DType::kF32, {}, {}}.num_cols()), 1);
}

}  // namespace
}  // namespace headrace
