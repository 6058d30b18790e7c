// Where the bytes of a packed weight stand. A panel holds kPanelCols neighbouring outputs over all
// of K, so that one sequential read serves a vector of outputs; missing columns of the last panel
// are zero. Inside, the parts of a group of 32 k follow each other:
//   legacy types   scales f16[32 cols] | offsets f16[32] (Q4_1, Q5_1) | codes
//   K types        per 256 k: d f16[32] | dmin f16[32] (not Q6_K), then eight groups of
//                  Q4_K, Q5_K: scales u8[32] | mins u8[32] | codes;  Q6_K: scales i8[2 halves][32]
//                  | codes
//   codes          "step" t of a group is its k 4t .. 4t+3; a row of codes is [32 cols][4 k] in
//   bytes
//     8 bits  [8 steps] rows
//     4 bits  [4] rows: low nibble step t, high nibble step t + 4
//     5 bits  as 4 bits, then fifth bits u64[2 vectors of 16 cols][8 steps], bit = (col % 16) * 4 +
//     k % 4 6 bits  as 4 bits, then rows [2]: upper two bits of step 4 h + i at bits 2 i of row h
//   float types    [K][32 cols] of the stored type
// Sizes are those of the file, but for Q4_K (148 bytes for 144) and Q5_K (180 for 176).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace headrace {

inline constexpr int kPanelCols = 32;
inline constexpr int kGroup = 32;  // k that share an activation scale
inline constexpr std::ptrdiff_t kHalvesBytes = std::ptrdiff_t{2} * kPanelCols;  // an f16 a column
inline constexpr std::ptrdiff_t kCodeRowBytes = std::ptrdiff_t{4} * kPanelCols;

struct PanelLayout {
  int code_bits = 0;  // 0: float type
  int zero_point = 0;
  bool has_offsets = false;
  bool has_integer_scales = false;
  int scales_per_group = 1;  // 2: weight groups of 16
  int value_bytes = 0;       // of float types
  int groups_per_block = 1;
  std::ptrdiff_t header_bytes = 0;  // d and dmin of a block
  std::ptrdiff_t codes_at = 0;      // inside a group, after its scales
  std::ptrdiff_t plane_at = 0;      // upper bits of 5- and 6-bit codes
  std::ptrdiff_t group_bytes = 0;
  std::ptrdiff_t block_bytes = 0;

  // From the panel's start.
  constexpr std::ptrdiff_t group_at(std::ptrdiff_t group_idx) const {
    return group_idx / groups_per_block * block_bytes + header_bytes +
           group_idx % groups_per_block * group_bytes;
  }
};

constexpr PanelLayout finish_layout(PanelLayout layout) {
  const std::ptrdiff_t scales = layout.has_integer_scales ? kPanelCols : kHalvesBytes;
  const int per_group = layout.has_integer_scales ? 2 : (layout.has_offsets ? 2 : 1);
  layout.codes_at = scales * per_group;
  layout.plane_at = layout.codes_at + 4 * kCodeRowBytes;
  layout.group_bytes = layout.codes_at + layout.code_bits * kCodeRowBytes;
  layout.groups_per_block = layout.has_integer_scales ? 8 : 1;
  layout.header_bytes = layout.has_integer_scales ? kHalvesBytes * (layout.has_offsets ? 2 : 1) : 0;
  layout.block_bytes = layout.header_bytes + layout.groups_per_block * layout.group_bytes;
  return layout;
}

constexpr PanelLayout panel_layout(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {.value_bytes = 4};
    case DType::kF16:
    case DType::kBF16:
      return {.value_bytes = 2};
    case DType::kQ4_0:
      return finish_layout({.code_bits = 4, .zero_point = 8});
    case DType::kQ4_1:
      return finish_layout({.code_bits = 4, .has_offsets = true});
    case DType::kQ5_0:
      return finish_layout({.code_bits = 5, .zero_point = 16});
    case DType::kQ5_1:
      return finish_layout({.code_bits = 5, .has_offsets = true});
    case DType::kQ8_0:
      return finish_layout({.code_bits = 8, .zero_point = 128});
    case DType::kQ4_K:
      return finish_layout({.code_bits = 4, .has_offsets = true, .has_integer_scales = true});
    case DType::kQ5_K:
      return finish_layout({.code_bits = 5, .has_offsets = true, .has_integer_scales = true});
    case DType::kQ6_K:
      return finish_layout(
          {.code_bits = 6, .zero_point = 32, .has_integer_scales = true, .scales_per_group = 2});
  }
  return {};
}

}  // namespace headrace
