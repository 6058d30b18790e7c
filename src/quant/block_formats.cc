#include "quant/block_formats.h"

#include <array>

#include "base/check.h"
#include "tensor/half.h"

namespace headrace {
namespace {

constexpr int kSuperBlock = 256;

std::uint8_t byte_at(const std::byte* p, int i) { return std::to_integer<std::uint8_t>(p[i]); }

float half_at(const std::byte* p, int i) {
  return f16_to_f32(static_cast<std::uint16_t>(byte_at(p, i) | byte_at(p, i + 1) << 8));
}

std::uint8_t low_nibble(std::uint8_t byte) { return byte & 0x0FU; }
std::uint8_t high_nibble(std::uint8_t byte) { return static_cast<std::uint8_t>(byte >> 4); }

// 32 values in 16 bytes: value i is the low nibble of byte i, value i + 16 its high nibble.
void split_nibbles(const std::byte* qs, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = low_nibble(byte_at(qs, i));
    codes[i + 16] = high_nibble(byte_at(qs, i));
  }
}

// Bit i of the 4 bytes at qh becomes bit 4 of code i.
void add_fifth_bits(const std::byte* qh, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) {
    const int bit = byte_at(qh, i / 8) >> (i % 8) & 1;
    codes[i] = static_cast<std::uint8_t>(codes[i] | bit << 4);
  }
}

void codes_q8_0(const std::byte* qs, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) {
    codes[i] = byte_at(qs, i) ^ 0x80U;  // two's complement + 128
  }
}

// 256 values in 128 bytes: bytes 32 j .. 32 j + 31 hold group 2 j in the low and group 2 j + 1 in
// the high nibbles.
void codes_q4_k(const std::byte* qs, std::uint8_t* codes) {
  for (int pair = 0; pair < 4; ++pair) {
    for (int i = 0; i < 32; ++i) {
      const std::uint8_t byte = byte_at(qs, pair * 32 + i);
      codes[pair * 64 + i] = low_nibble(byte);
      codes[pair * 64 + 32 + i] = high_nibble(byte);
    }
  }
}

// Bit g of qh[i] is the fifth bit of value i of group g.
void codes_q5_k(const std::byte* qh, const std::byte* qs, std::uint8_t* codes) {
  codes_q4_k(qs, codes);
  for (int group = 0; group < 8; ++group) {
    for (int i = 0; i < 32; ++i) {
      const int bit = byte_at(qh, i) >> group & 1;
      codes[group * 32 + i] = static_cast<std::uint8_t>(codes[group * 32 + i] | bit << 4);
    }
  }
}

// Halves of 128 values: 64 bytes of low nibbles and 32 bytes of upper pairs of bits each. Value 32
// s + i of a half has its low bits in byte i (s even) or 32 + i (s odd), low nibbles for s < 2, and
// its upper bits in pair s of qh[i].
void codes_q6_k(const std::byte* ql, const std::byte* qh, std::uint8_t* codes) {
  for (int half = 0; half < 2; ++half) {
    for (int s = 0; s < 4; ++s) {
      for (int i = 0; i < 32; ++i) {
        const int low = byte_at(ql, half * 64 + s % 2 * 32 + i) >> (s / 2 * 4) & 0x0F;
        const int high = byte_at(qh, half * 32 + i) >> (s * 2) & 3;
        codes[half * 128 + s * 32 + i] = static_cast<std::uint8_t>(low | high << 4);
      }
    }
  }
}

// The 12 bytes of Q4_K and Q5_K that hold eight 6-bit scales and eight 6-bit minima: the first four
// of each in the low bits of bytes 0..3 and 4..7, the last four in the nibbles of bytes 8..11 and
// the top pairs of bits of bytes 0..7.
void split_scales(const std::byte* packed, std::int8_t* scales, std::uint8_t* mins) {
  for (int i = 0; i < 4; ++i) {
    const std::uint8_t a = byte_at(packed, i);
    const std::uint8_t b = byte_at(packed, i + 4);
    const std::uint8_t c = byte_at(packed, i + 8);
    scales[i] = static_cast<std::int8_t>(a & 0x3F);
    mins[i] = static_cast<std::uint8_t>(b & 0x3F);
    scales[i + 4] = static_cast<std::int8_t>(low_nibble(c) | (a >> 6) << 4);
    mins[i + 4] = static_cast<std::uint8_t>(high_nibble(c) | (b >> 6) << 4);
  }
}

void block_codes(DType dtype, const std::byte* block, std::uint8_t* codes) {
  switch (dtype) {
    case DType::kQ4_0:  // d, 16 bytes of nibbles
      return split_nibbles(block + 2, codes);
    case DType::kQ4_1:  // d, m, nibbles
      return split_nibbles(block + 4, codes);
    case DType::kQ5_0:  // d, 4 bytes of fifth bits, nibbles
      split_nibbles(block + 6, codes);
      return add_fifth_bits(block + 2, codes);
    case DType::kQ5_1:  // d, m, fifth bits, nibbles
      split_nibbles(block + 8, codes);
      return add_fifth_bits(block + 4, codes);
    case DType::kQ8_0:  // d, 32 signed bytes
      return codes_q8_0(block + 2, codes);
    case DType::kQ4_K:  // d, dmin, 12 bytes of scales, 128 of nibbles
      return codes_q4_k(block + 16, codes);
    case DType::kQ5_K:  // d, dmin, scales, 32 bytes of fifth bits, nibbles
      return codes_q5_k(block + 16, block + 48, codes);
    case DType::kQ6_K:  // 128 bytes of nibbles, 64 of upper bits, 16 int8 scales, d
      return codes_q6_k(block, block + 128, codes);
    default:
      HR_CHECK(is_quantized(dtype));
  }
}

void block_integer_scales(DType dtype,
                          const std::byte* block,
                          std::int8_t* scales,
                          std::uint8_t* mins) {
  if (dtype == DType::kQ6_K) {
    for (int i = 0; i < 16; ++i) {
      scales[i] = static_cast<std::int8_t>(byte_at(block, 192 + i));
    }
  } else {
    split_scales(block + 4, scales, mins);
  }
}

float block_scale(DType dtype, const std::byte* block) {
  return half_at(block, dtype == DType::kQ6_K ? 208 : 0);
}

void block_affine(DType dtype, const std::byte* block, float* scales, float* offsets) {
  const float d = block_scale(dtype, block);
  if (!has_integer_scales(dtype)) {
    scales[0] = d;
    if (has_offsets(dtype)) {
      offsets[0] = half_at(block, 2);
    }
    return;
  }
  std::array<std::int8_t, 16> integer_scales{};
  std::array<std::uint8_t, 8> mins{};
  block_integer_scales(dtype, block, integer_scales.data(), mins.data());
  const int num_groups = kSuperBlock / group_size(dtype);
  for (int g = 0; g < num_groups; ++g) {
    scales[g] = d * static_cast<float>(integer_scales[g]);
  }
  if (has_offsets(dtype)) {
    const float dmin = half_at(block, 2);
    for (int g = 0; g < num_groups; ++g) {
      offsets[g] = -(dmin * static_cast<float>(mins[g]));
    }
  }
}

}  // namespace

void unpack_affine_row(DType dtype,
                       const std::byte* row,
                       std::int64_t n,
                       std::uint8_t* codes,
                       float* scales,
                       float* offsets) {
  const DTypeInfo& info = dtype_info(dtype);
  HR_DCHECK(is_quantized(dtype) && n % info.block_size == 0);
  const int groups_per_block = info.block_size / group_size(dtype);
  float* group_offsets = has_offsets(dtype) ? offsets : nullptr;
  for (std::int64_t block = 0; block < n / info.block_size; ++block) {
    const std::byte* bytes = row + block * info.block_bytes;
    block_codes(dtype, bytes, codes + block * info.block_size);
    const std::int64_t group = block * groups_per_block;
    block_affine(
        dtype, bytes, scales + group, group_offsets == nullptr ? nullptr : group_offsets + group);
  }
}

void unpack_codes_row(DType dtype, const std::byte* row, std::int64_t n, std::uint8_t* codes) {
  const DTypeInfo& info = dtype_info(dtype);
  HR_DCHECK(is_quantized(dtype) && n % info.block_size == 0);
  for (std::int64_t block = 0; block < n / info.block_size; ++block) {
    block_codes(dtype, row + block * info.block_bytes, codes + block * info.block_size);
  }
}

void unpack_integer_scales_row(DType dtype,
                               const std::byte* row,
                               std::int64_t n,
                               const IntegerScales& out) {
  HR_DCHECK(has_integer_scales(dtype) && n % kSuperBlock == 0);
  const int block_bytes = dtype_info(dtype).block_bytes;
  const int groups_per_block = kSuperBlock / group_size(dtype);
  for (std::int64_t block = 0; block < n / kSuperBlock; ++block) {
    const std::byte* bytes = row + block * block_bytes;
    out.block_scales[block] = block_scale(dtype, bytes);
    if (has_offsets(dtype)) {
      out.block_mins[block] = half_at(bytes, 2);
      block_integer_scales(
          dtype, bytes, out.scales + block * groups_per_block, out.mins + block * groups_per_block);
    } else {
      block_integer_scales(DType::kQ6_K, bytes, out.scales + block * groups_per_block, nullptr);
    }
  }
}

}  // namespace headrace
