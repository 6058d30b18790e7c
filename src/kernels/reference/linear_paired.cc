#include "kernels/reference/linear_paired.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace::scalar {
namespace {

constexpr int kGroupsPerBlock = 2 * kPairsPerBlock;

// Where k of a row stands among its codes.
std::ptrdiff_t code_at(std::ptrdiff_t k) {
  return k / kPair * kPair + k % kGroup / 4 * 8 + k % kPair / kGroup * 4 + k % 4;
}

// Codes and what follows from them; returns the group's scale.
float quantize_group(const float* values, std::ptrdiff_t group_idx, const PairedRow& out) {
  float amax = 0;
  for (int k = 0; k < kGroup; ++k) {
    amax = std::max(amax, std::fabs(values[k]));
  }
  const bool zero = !(amax >= 1e-30F);
  const float inverse = zero ? 0.0F : 127.0F / amax;
  const float scale = zero ? 0.0F : amax / 127.0F;
  int sum = 0;
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    const float scaled = zero ? 0.0F : std::max(-127.0F, std::min(127.0F, values[k] * inverse));
    const auto code = static_cast<std::int8_t>(std::nearbyint(scaled));
    out.codes[code_at(group_idx * kGroup + k)] = code;
    sum += code;
  }
  out.zero_terms[group_idx] = -8 * sum;
  out.scaled_sums[group_idx] = scale * static_cast<float>(sum);
  return scale;
}

void clear_group(std::ptrdiff_t group_idx, const PairedRow& out) {
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    out.codes[code_at(group_idx * kGroup + k)] = 0;
  }
  out.integer_scales[group_idx] = 0;
  out.zero_terms[group_idx] = 0;
  out.scaled_sums[group_idx] = 0;
}

std::int64_t group_dot(const RowsView& rows,
                       std::ptrdiff_t row,
                       std::ptrdiff_t group_idx,
                       const PairedColumn& column) {
  const std::int8_t* codes = rows.codes + row * rows.code_stride;
  std::int64_t sum = rows.zero_terms[row * rows.group_stride + group_idx];
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    sum += column.codes[static_cast<std::size_t>(k)] * codes[code_at(group_idx * kGroup + k)];
  }
  return sum;
}

float dot_column(const PanelJob& job, std::ptrdiff_t row, std::ptrdiff_t col) {
  const RowsView& rows = job.rows;
  float acc = 0;
  float offsets = 0;
  std::int64_t block = 0;
  const std::ptrdiff_t end = (job.k_end + kGroup - 1) / kGroup;
  for (std::ptrdiff_t g = job.k_begin / kGroup; g < end; ++g) {
    const PairedColumn column = read_paired_column(job.dtype, job.panel, g, col);
    const std::ptrdiff_t at = row * rows.group_stride + g;
    const int scale = (column.scale * rows.integer_scales[at] + (1 << 14)) >> 15;
    block += scale * group_dot(rows, row, g, column);
    offsets = std::fma(column.offset, rows.scaled_sums[at], offsets);
    if ((g + 1) % kGroupsPerBlock == 0 || g + 1 == end) {
      const float unit = column.unit * rows.units[row * rows.unit_stride + g / kGroupsPerBlock];
      acc = std::fma(static_cast<float>(static_cast<std::int32_t>(block)), unit, acc);
      block = 0;
    }
  }
  return paired_layout(job.dtype).has_offsets ? acc + offsets : acc;
}

}  // namespace

void quantize_paired_row(const float* x, int dim, const PairedRow& out) {
  const std::ptrdiff_t groups = dim / kGroup;
  for (std::ptrdiff_t begin = 0; begin < groups; begin += kGroupsPerBlock) {
    const std::ptrdiff_t end = std::min<std::ptrdiff_t>(groups, begin + kGroupsPerBlock);
    std::array<float, kGroupsPerBlock> scales{};
    for (std::ptrdiff_t g = begin; g < end; ++g) {
      scales[static_cast<std::size_t>(g - begin)] = quantize_group(x + g * kGroup, g, out);
    }
    const float largest = *std::max_element(scales.begin(), scales.end());
    const float inverse = largest > 0 ? 32768.0F / largest : 0;
    out.units[begin / kGroupsPerBlock] = largest;
    for (std::ptrdiff_t g = begin; g < end; ++g) {
      const float scaled = scales[static_cast<std::size_t>(g - begin)] * inverse;
      out.integer_scales[g] = static_cast<std::int16_t>(std::min(32767.0F, std::nearbyint(scaled)));
    }
  }
  if (groups % 2 != 0) {
    clear_group(groups, out);
  }
}

void dot_paired(const PanelJob& job) {
  for (std::ptrdiff_t row = 0; row < job.rows.num_rows; ++row) {
    for (std::ptrdiff_t col = 0; col < kPanelCols; ++col) {
      job.acc[row * kPanelCols + col] = dot_column(job, row, col);
    }
  }
}

}  // namespace headrace::scalar
