#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/linear.h"
#include "kernels/linear_fixture.h"
#include "quant/dequantize.h"

namespace headrace {
namespace {

TEST(PackedWeight, RowsComeBackAsDequantized) {
  for (const DType dtype : kAllDTypes) {
    const int k = 512;
    const int n = 67;
    const StoredMatrix matrix(dtype, n, k, 1);
    const std::vector<float> expected = dequantize(matrix.view);
    LinearBench bench(scalar::linear_kernels(), 2);
    const std::unique_ptr<Weight> weight = bench.pack(matrix);
    const std::int32_t ids[] = {0, 66, 31, 32, 33, 0, 64, 1, 2, 3};
    std::vector<float> out(std::size_t{10} * k);
    bench.driver.embed(*weight, ids, 10, 1.0F, out.data());
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(std::memcmp(&out[static_cast<std::size_t>(i) * k],
                            &expected[static_cast<std::size_t>(ids[i]) * k],
                            static_cast<std::size_t>(k) * sizeof(float)),
                0)
          << dtype_info(dtype).name << " row " << ids[i];
    }
  }
}

TEST(PackedWeight, EmbeddingIsScaled) {
  const StoredMatrix matrix(DType::kF32, 4, 8, 2);
  const std::vector<float> expected = dequantize(matrix.view);
  LinearBench bench(scalar::linear_kernels());
  const std::unique_ptr<Weight> weight = bench.pack(matrix);
  const std::int32_t id = 3;
  std::vector<float> out(8);
  bench.driver.embed(*weight, &id, 1, 25.25F, out.data());
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(out[k], expected[3 * 8 + k] * 25.25F);
  }
}

TEST(PackedWeight, HoldsAtMostFivePercentMoreThanTheFile) {
  for (const DType dtype : kAllDTypes) {
    const auto file = static_cast<double>(1536 * row_bytes(dtype, 1536));
    const auto packed = static_cast<double>(packed_weight_bytes(dtype, 1536, 1536, {}));
    EXPECT_GE(packed, file) << dtype_info(dtype).name;
    EXPECT_LE(packed, 1.03 * file) << dtype_info(dtype).name;
  }
}

TEST(PackedWeight, IsCountedWhileItLives) {
  const StoredMatrix matrix(DType::kQ4_1, 100, 64, 3);
  LinearBench bench(scalar::linear_kernels());
  {
    const std::unique_ptr<Weight> weight = bench.pack(matrix);
    EXPECT_EQ(weight->num_rows, 100);
    EXPECT_EQ(weight->num_cols, 64);
    EXPECT_EQ(weight->bytes, packed_weight_bytes(DType::kQ4_1, 100, 64, {}));
    EXPECT_EQ(bench.counters.bytes(MemoryPart::kWeights), weight->bytes);
  }
  EXPECT_EQ(bench.counters.bytes(MemoryPart::kWeights), 0U);
}

TEST(PackedWeight, RefusesWhatIsNoMatrixOfItsType) {
  ThreadPool pool(1);
  MemoryCounters counters;
  const std::vector<std::byte> bytes(1024);
  TensorView view{"blk.0.ffn_up.weight", DType::kQ4_K, {2, 580}, bytes};
  const Result<std::unique_ptr<Weight>> uneven = pack_weight(view, {}, pool, counters);
  ASSERT_FALSE(uneven.ok());
  EXPECT_EQ(uneven.error().message,
            "tensor 'blk.0.ffn_up.weight': 2 rows of 580 values cannot be Q4_K");
  view.shape = {2, 512};
  const Result<std::unique_ptr<Weight>> cut = pack_weight(view, {}, pool, counters);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().message,
            "tensor 'blk.0.ffn_up.weight': 1024 bytes where 2 rows of 512 values of Q4_K need 576");
  view.shape = {0, 512};
  EXPECT_FALSE(pack_weight(view, {}, pool, counters).ok());
  EXPECT_EQ(counters.bytes(MemoryPart::kWeights), 0U);
}

}  // namespace
}  // namespace headrace
