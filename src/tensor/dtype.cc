#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace headrace {
namespace {

constexpr std::array<DTypeInfo, kNumDTypes> kInfos = {{
    {DType::kF32, "F32", 0, 1, 4},
    {DType::kF16, "F16", 1, 1, 2},
    {DType::kBF16, "BF16", 30, 1, 2},
    {DType::kQ4_0, "Q4_0", 2, 32, 18},
    {DType::kQ4_1, "Q4_1", 3, 32, 20},
    {DType::kQ5_0, "Q5_0", 6, 32, 22},
    {DType::kQ5_1, "Q5_1", 7, 32, 24},
    {DType::kQ8_0, "Q8_0", 8, 32, 34},
    {DType::kQ4_K, "Q4_K", 12, 256, 144},
    {DType::kQ5_K, "Q5_K", 13, 256, 176},
    {DType::kQ6_K, "Q6_K", 14, 256, 210},
}};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  const DTypeInfo& info = kInfos[static_cast<std::size_t>(dtype)];
  HR_DCHECK(info.dtype == dtype);
  return info;
}

std::optional<DType> dtype_from_gguf(std::uint32_t gguf_id) {
  for (const DTypeInfo& info : kInfos) {
    if (info.gguf_id == gguf_id) {
      return info.dtype;
    }
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& info : kInfos) {
    if (info.name == name) {
      return info.dtype;
    }
  }
  return std::nullopt;
}

std::int64_t row_bytes(DType dtype, std::int64_t num_values) {
  const DTypeInfo& info = dtype_info(dtype);
  HR_DCHECK(num_values % info.block_size == 0);
  return num_values / info.block_size * info.block_bytes;
}

}  // namespace headrace
