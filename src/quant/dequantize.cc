#include "quant/dequantize.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "quant/block_formats.h"
#include "tensor/half.h"

namespace headrace {
namespace {

std::uint16_t load_u16(const std::byte* src, std::int64_t i) {
  std::uint16_t value = 0;
  std::memcpy(&value, src + i * 2, sizeof(value));
  return value;
}

// One block of at most 256 values.
void dequantize_block(DType dtype, const std::byte* block, float* dst) {
  const int block_size = dtype_info(dtype).block_size;
  std::array<std::uint8_t, 256> codes;
  std::array<float, 16> scales;
  std::array<float, 16> offsets{};
  unpack_affine_row(dtype, block, block_size, codes.data(), scales.data(), offsets.data());
  const int group = group_size(dtype);
  const int zero = zero_point(dtype);
  if (has_offsets(dtype)) {
    for (int i = 0; i < block_size; ++i) {
      dst[i] = scales[i / group] * static_cast<float>(codes[i]) + offsets[i / group];
    }
  } else {
    for (int i = 0; i < block_size; ++i) {
      dst[i] = scales[i / group] * static_cast<float>(codes[i] - zero);
    }
  }
}

}  // namespace

void dequantize_row(DType dtype, const std::byte* src, float* dst, std::int64_t n) {
  const DTypeInfo& info = dtype_info(dtype);
  HR_DCHECK(n % info.block_size == 0);
  switch (dtype) {
    case DType::kF32:
      std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < n; ++i) {
        dst[i] = f16_to_f32(load_u16(src, i));
      }
      return;
    case DType::kBF16:
      for (std::int64_t i = 0; i < n; ++i) {
        dst[i] = bf16_to_f32(load_u16(src, i));
      }
      return;
    default:
      for (std::int64_t block = 0; block < n / info.block_size; ++block) {
        dequantize_block(dtype, src + block * info.block_bytes, dst + block * info.block_size);
      }
  }
}

std::vector<float> dequantize(const TensorView& tensor) {
  const std::int64_t rows = tensor.num_rows();
  const std::int64_t cols = tensor.num_cols();
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    dequantize_row(tensor.dtype,
                   tensor.data.data() + row * row_bytes(tensor.dtype, cols),
                   values.data() + row * cols,
                   cols);
  }
  return values;
}

}  // namespace headrace
