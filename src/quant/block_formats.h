// The inside of the quantized block types of GGUF, as codes, scales and offsets. Whoever packs
// weights for a kernel, or turns them back into floats, reads blocks through here; no other file
// knows the position of a bit.
//
// A row of n values (n a multiple of the block size) falls into groups of group_size(dtype)
// neighbouring values. Each value has a code q of code_bits(dtype) bits, each group a float scale:
//   types without offsets:  w = scale * float(q - zero_point)           Q4_0 Q5_0 Q8_0 Q6_K
//   types with offsets:     w = scale * float(q) + offset               Q4_1 Q5_1 Q4_K Q5_K
// in float arithmetic, each operation rounded once (no fused multiply-add), is the value by
// definition of the format.
//   type   group  bits  zero  scale            offset
//   Q4_0    32     4      8   d                -
//   Q4_1    32     4      0   d                m
//   Q5_0    32     5     16   d                -
//   Q5_1    32     5      0   d                m
//   Q8_0    32     8    128   d                -            the file's signed byte + 128
//   Q4_K    32     4      0   d * sc (6 bits)  -(dmin * m)  m of 6 bits
//   Q5_K    32     5      0   d * sc (6 bits)  -(dmin * m)  m of 6 bits
//   Q6_K    16     6     32   d * sc (int8)    -
// d, m and dmin of a block are halves, so that scales may be negative, zero, subnormal, and in a
// broken file infinite or NaN. Pure functions, any thread. Preconditions, no errors. Source: the
// GGUF specification and the `gguf` package.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace headrace {

constexpr int group_size(DType dtype) { return dtype == DType::kQ6_K ? 16 : 32; }

constexpr int code_bits(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ4_K:
      return 4;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
      return 5;
    case DType::kQ6_K:
      return 6;
    case DType::kQ8_0:
      return 8;
    default:
      return 0;  // not a type of codes
  }
}

// The code that stands for 0; 0 for the types with offsets.
constexpr int zero_point(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return 8;
    case DType::kQ5_0:
      return 16;
    case DType::kQ6_K:
      return 32;
    case DType::kQ8_0:
      return 128;
    default:
      return 0;
  }
}

constexpr bool has_offsets(DType dtype) {
  return dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K ||
         dtype == DType::kQ5_K;
}

// True for Q4_K, Q5_K and Q6_K: group scales are integers against a float of the block of 256.
constexpr bool has_integer_scales(DType dtype) {
  return dtype == DType::kQ4_K || dtype == DType::kQ5_K || dtype == DType::kQ6_K;
}

// Unpacks n values of a quantized row: codes[n], scales[n / group_size], and offsets[n /
// group_size] for a type with offsets (else offsets is not touched and may be null). Values keep
// the row's order. `row` needs no alignment.
void unpack_affine_row(DType dtype,
                       const std::byte* row,
                       std::int64_t n,
                       std::uint8_t* codes,
                       float* scales,
                       float* offsets);

// Only the codes.
void unpack_codes_row(DType dtype, const std::byte* row, std::int64_t n, std::uint8_t* codes);

// The two levels of a type with integer scales, per block of 256: block_scales[n / 256] holds d;
// scales[n / group_size] the integers sc (Q4_K, Q5_K: 0..63; Q6_K: -128..127). For Q4_K and Q5_K
// also block_mins[n / 256], which holds dmin, and mins[n / 32], 0..63; for Q6_K both are not
// touched and may be null.
struct IntegerScales {
  float* block_scales = nullptr;
  std::int8_t* scales = nullptr;
  float* block_mins = nullptr;
  std::uint8_t* mins = nullptr;
};
void unpack_integer_scales_row(DType dtype,
                               const std::byte* row,
                               std::int64_t n,
                               const IntegerScales& out);

}  // namespace headrace
