// Where the bytes of a weight with paired scales stand: the form that 4-bit types take on machines
// with fast dot products of 16-bit integers. Panels of kPanelCols outputs over all of K, as in
// panel_layout.h, but two groups of 32 k share a vector, so that their sums meet as neighbouring
// 16-bit numbers and one dot product multiplies both by their integer scales. Per 256 k:
//   header    Q4_0, Q4_1: unit f32[32 cols]
//             Q4_K: d f16[32] | dmin f16[32] | exponent u8[32], unit = 2^(exponent - 127) | 32
//             bytes
//   four pairs, fewer at the end of K, of
//     scales  Q4_0, Q4_1: i16[32 cols][2 groups];  Q4_K: u8[32][2], the file's sc
//     offsets Q4_1: i16[32 cols][2 groups];  Q4_K: u8[32][2], the file's m;  Q4_0: none
//     codes   [4 rows] of 256 bytes: low nibble step t, high nibble step t + 4 (a step is 4 k);
//             [2 vectors of 16 cols][2 halves][8 lanes][2 groups][4 k], lane 2 (c / 4) + c % 2 of
//             half c % 4 / 2 for column c of its vector
// w = unit * (scale * (code - 8) + 8 * offset), with integers; those of Q4_K are
// scale = d sc / unit and offset = (8 d sc - dmin m) / (8 unit), each to the nearest. |scale| and
// |offset| are at most 4095, and |scale| at most 8191 for Q4_0. Where K is an odd number of groups,
// the last pair's second group is zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/panel_layout.h"

namespace headrace {

inline constexpr int kPair = 2 * kGroup;  // k of two groups
inline constexpr int kPairsPerBlock = 4;
inline constexpr int kScaleBlock = kPair * kPairsPerBlock;  // k that share a float scale
inline constexpr int kMaxIntegerScale = 4095;
inline constexpr int kMaxScaleAlone = 8191;  // of a type without offsets
inline constexpr int kTileRows = 4;          // rows whose quantized input stands together
inline constexpr std::ptrdiff_t kPairedRowBytes = std::ptrdiff_t{8} * kPanelCols;

struct PairedLayout {
  bool has_offsets = false;
  bool has_byte_scales = false;
  std::ptrdiff_t header_bytes = 0;
  std::ptrdiff_t offsets_at = 0;  // inside a pair, after its scales
  std::ptrdiff_t codes_at = 0;
  std::ptrdiff_t pair_bytes = 0;

  // From the panel's start.
  constexpr std::ptrdiff_t header_at(std::ptrdiff_t pair_idx) const {
    const std::ptrdiff_t block_bytes = header_bytes + kPairsPerBlock * pair_bytes;
    return pair_idx / kPairsPerBlock * block_bytes;
  }
  constexpr std::ptrdiff_t pair_at(std::ptrdiff_t pair_idx) const {
    return header_at(pair_idx) + header_bytes + pair_idx % kPairsPerBlock * pair_bytes;
  }
};

constexpr PairedLayout paired_layout(DType dtype) {
  PairedLayout layout;
  layout.has_offsets = dtype != DType::kQ4_0;
  layout.has_byte_scales = dtype == DType::kQ4_K;
  layout.header_bytes = std::ptrdiff_t{layout.has_byte_scales ? 6 : 4} * kPanelCols;
  const std::ptrdiff_t number_bytes = layout.has_byte_scales ? 1 : 2;
  layout.offsets_at = number_bytes * 2 * kPanelCols;
  layout.codes_at = layout.offsets_at * (layout.has_offsets ? 2 : 1);
  layout.pair_bytes = layout.codes_at + 4 * kPairedRowBytes;
  return layout;
}

// Where a column's 8 bytes stand in a row of codes.
constexpr std::ptrdiff_t paired_column_at(std::ptrdiff_t col) {
  const std::ptrdiff_t c = col % 16;
  return col / 16 * 128 + c % 4 / 2 * 64 + (c / 4 * 2 + c % 2) * 8;
}

// 32 neighbouring k of one output.
struct PairedColumn {
  std::array<std::uint8_t, kGroup> codes{};
  int scale = 0;
  int offset = 0;
  float unit = 0;
};
PairedColumn read_paired_column(DType dtype,
                                const std::byte* panel,
                                std::ptrdiff_t group_idx,
                                std::ptrdiff_t col);

}  // namespace headrace
