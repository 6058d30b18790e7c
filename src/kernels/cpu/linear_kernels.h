// What one instruction-set tier supplies to linear layers: a table of functions over plain structs.
// The tiers' files see nothing else of the project, so that code built with wider flags
// instantiates no shared templates. Functions are pure on their arguments, called by pool workers,
// and have preconditions and no errors.
//
// Arithmetic, the same in every tier, tile and number of rows (bitwise): groups in ascending order
// of k,
//   quantized types   acc = fma(float(sum of q_w q_a - zero * sum of q_a), scale_w * scale_a, acc),
//   then for types with
//                     offsets acc = fma(offset_w, scale_a * sum of q_a, acc)
//   Q6_K (16 values)  t = float(dot_0) * scale_0; t = fma(float(dot_1), scale_1, t); acc = fma(t,
//   scale_a, acc) float types       acc = fma(x[k], w[k], acc)
// and for 4-bit types in the form of paired scales (paired_layout.h), over blocks of 256 k that
// begin at multiples of 256, a block cut where the range of k ends,
//   t = (scale_w * scale_a + 2^14) >> 15, integers: a group's scale against the product of its
//   units block = sum over groups of t * sum of (q_w - 8) q_a + offset_w * sum_a, exact: below 8 *
//   2 * 4095 * 32512 < 2^31 (Q4_0: 8 * 8191 * 32512) acc = fma(float(block), unit_w * unit_a, acc)
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/paired_layout.h"
#include "kernels/cpu/panel_layout.h"

namespace headrace {

// Some rows of a step, as the kernels read them; only what the weight's type needs is set.
struct RowsView {
  const float* x = nullptr;  // float types: [rows, x_stride]
  std::int64_t x_stride = 0;
  const std::int8_t* codes = nullptr;  // quantized types: [rows, code_stride], -127..127
  std::int64_t code_stride = 0;
  const float* scales = nullptr;  // [rows, group_stride]
  const float* scaled_sums =
      nullptr;  // [rows, group_stride] scale * sum of codes; types with offsets
  const std::int32_t* zero_terms =
      nullptr;  // [rows, term_stride] -zero * sum of codes of each weight group
  std::int64_t group_stride = 0;
  std::int64_t term_stride = 0;
  // Paired scales: tiles of kTileRows rows, every stride from tile to tile, PairedRow's order
  // inside.
  const std::int16_t* integer_scales = nullptr;
  const std::int16_t* integer_sums = nullptr;
  const float* units = nullptr;
  std::int64_t unit_stride = 0;
  int num_rows = 0;
};

// A row quantized for weights with paired scales. The groups' scales become integers against the
// largest of 256 k, the unit: integer = min(32767, scale * (32768 / unit) to the nearest), so that
// the largest counts as 1 in the rounded products.
// Four rows stand in a tile; the pointers are row 0's of it with the row's own place added.
struct PairedRow {
  std::int8_t* codes =
      nullptr;  // [K / 64][4 rows][8 steps][2 groups][4 k]; a missing last group is zero
  std::int16_t* integer_scales = nullptr;  // [K / 64][4 rows][2 groups]
  std::int16_t* integer_sums = nullptr;    // the same: scale * sum of codes * (8 / unit), rounded
  std::int32_t* zero_terms = nullptr;      // the same: -8 * sum of codes
  float* units = nullptr;                  // [K / 256][4 rows]
};

// acc[row, col] continues over k in [k_begin, k_end); acc is [num_rows, kPanelCols]. For quantized
// types both ends are multiples of kGroup.
struct PanelJob {
  DType dtype = DType::kF32;
  const std::byte* panel = nullptr;
  RowsView rows;
  int k_begin = 0;
  int k_end = 0;
  float* acc = nullptr;
  bool fresh = false;  // paired scales: acc begins at 0, whatever stands there
  // Packed bytes that come after this range of k: each tile of rows fetches its `ahead_lines` cache
  // lines for each of its groups or pairs, so that memory works while few rows are multiplied. A
  // wish: it may reach beyond the weight, and a tier need not heed it.
  const std::byte* ahead = nullptr;
  int ahead_lines = 0;
};

// Part of a panel spread out, for many rows: codes [k/4][kPanelCols][4], scales and offsets
// [weight group][kPanelCols]; of a half-float type values [k][kPanelCols].
struct UnpackedPanel {
  std::uint8_t* codes = nullptr;
  float* scales = nullptr;
  float* offsets = nullptr;
  float* values = nullptr;
};

// The same of a panel with paired scales.
struct UnpackedPairs {
  std::uint8_t* codes = nullptr;    // as packed, each code a byte, eight rows a pair
  std::int16_t* scales = nullptr;   // [pair][kPanelCols][2]
  float* units = nullptr;           // [block][kPanelCols]
  std::int16_t* offsets = nullptr;  // as scales
};

// A panel's sums to an output: value = one segment, s0 + s1, or (s0 + s1) + (s2 + s3); then bias,
// then what stands in out. The two planes of an input are two segments.
struct FinishJob {
  const float* acc = nullptr;     // row m of segment s: acc + s * segment_stride + m * row_stride
  const float* up_acc = nullptr;  // gated: the same for `up`
  std::int64_t segment_stride = 0;
  std::int64_t row_stride = kPanelCols;
  int num_segments = 1;  // 1, 2 or 4
  int num_rows = 0;
  int num_cols = 0;      // of the panel that exist
  float* out = nullptr;  // [num_rows, out_stride]
  std::int64_t out_stride = 0;
  const float* bias = nullptr;
  bool add_to_out = false;
};

struct LinearKernels {
  const char* tier = nullptr;
  // Whether so many rows repay unpacking a panel first: a matter of speed alone. Null: never.
  bool (*unpacks)(DType dtype, int num_rows) = nullptr;

  // y = x / rms(x) * weight; the squares are summed in 16 lanes, k mod 16, added pairwise.
  void (*normalize_row)(const float* x, const float* weight, float eps, int dim, float* y) =
      nullptr;
  // codes = x * (127 / amax) to the nearest integer, ties to even, per group of 32; scale = amax /
  // 127; a group of amax < 1e-30 is all zero. sums: of each 16 codes.
  void (*quantize_row)(
      const float* x, int dim, std::int8_t* codes, float* scales, std::int32_t* sums) = nullptr;
  void (*dot)(const PanelJob& job) = nullptr;  // every type
  void (*unpack)(const PanelJob& job, const UnpackedPanel& out) = nullptr;
  void (*dot_unpacked)(const PanelJob& job,
                       const UnpackedPanel& panel) = nullptr;  // panel begins at k_begin

  // Paired scales; k_begin is a multiple of kPair, k_end too or K. Null: the tier has no such form.
  int unpack_paired_from = 0;  // so many rows repay unpacking a panel first; 0: never
  void (*quantize_paired_row)(const float* x, int dim, const PairedRow& out) = nullptr;
  void (*dot_paired)(const PanelJob& job) = nullptr;  // a whole segment, fresh
  void (*unpack_paired)(const PanelJob& job, const UnpackedPairs& out) = nullptr;
  void (*dot_unpacked_paired)(const PanelJob& job, const UnpackedPairs& panel) = nullptr;

  void (*finish)(const FinishJob& job) = nullptr;
  void (*finish_silu)(const FinishJob& job) = nullptr;       // out = silu(gate) * up
  void (*finish_gelu_tanh)(const FinishJob& job) = nullptr;  // out = gelu_tanh(gate) * up
};

namespace scalar {
const LinearKernels& linear_kernels();
}
namespace avx2 {
const LinearKernels& linear_kernels();
}
namespace avx512vnni {
const LinearKernels& linear_kernels();
}

}  // namespace headrace
