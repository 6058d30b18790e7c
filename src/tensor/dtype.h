// Element types of tensors as files store them. A block type packs block_size neighbouring values
// of a row into block_bytes bytes; a row is whole blocks. Sizes and ids are GGUF's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

inline constexpr int kNumDTypes = 11;

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "Q4_K"
  std::uint32_t gguf_id;
  int block_size;   // values in a block
  int block_bytes;  // bytes of a block
};

const DTypeInfo& dtype_info(DType dtype);
std::optional<DType> dtype_from_gguf(std::uint32_t gguf_id);
std::optional<DType> dtype_from_name(std::string_view name);  // exact, as in DTypeInfo::name

inline bool is_quantized(DType dtype) { return dtype > DType::kBF16; }

// Bytes of a row of num_values, a multiple of the block size.
std::int64_t row_bytes(DType dtype, std::int64_t num_values);

}  // namespace headrace
