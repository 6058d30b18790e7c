#include "kernels/reference/linear_paired.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace::scalar {
namespace {

constexpr int kGroupsPerBlock = 2 * kPairsPerBlock;

// Where k of a row stands among its codes.
std::ptrdiff_t code_at(std::ptrdiff_t k) {
  return k / kPair * kPair * kTileRows + k % kGroup / 4 * 8 + k % kPair / kGroup * 4 + k % 4;
}

// Where a group's number stands, of those that pairs of groups keep together.
std::ptrdiff_t pair_number_at(std::ptrdiff_t group_idx) {
  return group_idx / 2 * 2 * kTileRows + group_idx % 2;
}

struct GroupNumbers {
  float scale = 0;
  float scaled_sum = 0;
};

// Codes and what follows from them.
GroupNumbers quantize_group(const float* values, std::ptrdiff_t group_idx, const PairedRow& out) {
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
  out.zero_terms[pair_number_at(group_idx)] = -8 * sum;
  return {scale, scale * static_cast<float>(sum)};
}

void clear_group(std::ptrdiff_t group_idx, const PairedRow& out) {
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    out.codes[code_at(group_idx * kGroup + k)] = 0;
  }
  out.integer_scales[pair_number_at(group_idx)] = 0;
  out.zero_terms[pair_number_at(group_idx)] = 0;
  out.integer_sums[pair_number_at(group_idx)] = 0;
}

std::int64_t group_dot(const RowsView& rows,
                       std::ptrdiff_t row,
                       std::ptrdiff_t group_idx,
                       const PairedColumn& column) {
  const std::ptrdiff_t own = row % kTileRows;
  const std::int8_t* codes = rows.codes + row / kTileRows * rows.code_stride + own * kPair;
  std::int64_t sum =
      rows.zero_terms[row / kTileRows * rows.group_stride + own * 2 + pair_number_at(group_idx)];
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    const std::int64_t code = column.codes[static_cast<std::size_t>(k)];
    sum += code * codes[code_at(group_idx * kGroup + k)];
  }
  return sum;
}

float dot_column(const PanelJob& job, std::ptrdiff_t row, std::ptrdiff_t col) {
  const RowsView& rows = job.rows;
  float acc = 0;
  std::int64_t block = 0;
  const std::ptrdiff_t tile = row / kTileRows;
  const std::ptrdiff_t own = row % kTileRows;
  const std::int16_t* scales = rows.integer_scales + tile * rows.group_stride + own * 2;
  const std::int16_t* sums = rows.integer_sums + tile * rows.group_stride + own * 2;
  const float* units = rows.units + tile * rows.unit_stride + own;
  const std::ptrdiff_t end = (job.k_end + kGroup - 1) / kGroup;
  for (std::ptrdiff_t g = job.k_begin / kGroup; g < end; ++g) {
    const PairedColumn column = read_paired_column(job.dtype, job.panel, g, col);
    const int scale = (column.scale * scales[pair_number_at(g)] + (1 << 14)) >> 15;
    block += scale * group_dot(rows, row, g, column);
    block += std::int64_t{column.offset} * sums[pair_number_at(g)];
    if ((g + 1) % kGroupsPerBlock == 0 || g + 1 == end) {
      const float unit = column.unit * units[g / kGroupsPerBlock * kTileRows];
      acc = std::fma(static_cast<float>(static_cast<std::int32_t>(block)), unit, acc);
      block = 0;
    }
  }
  return acc;
}

}  // namespace

void quantize_paired_row(const float* x, int dim, const PairedRow& out) {
  const std::ptrdiff_t groups = dim / kGroup;
  for (std::ptrdiff_t begin = 0; begin < groups; begin += kGroupsPerBlock) {
    const std::ptrdiff_t end = std::min<std::ptrdiff_t>(groups, begin + kGroupsPerBlock);
    std::array<GroupNumbers, kGroupsPerBlock> numbers{};
    float largest = 0;
    for (std::ptrdiff_t g = begin; g < end; ++g) {
      GroupNumbers& own = numbers[static_cast<std::size_t>(g - begin)];
      own = quantize_group(x + g * kGroup, g, out);
      largest = std::max(largest, own.scale);
    }
    const float scale_factor = largest > 0 ? 32768.0F / largest : 0;
    const float sum_factor = largest > 0 ? 8.0F / largest : 0;
    out.units[begin / kGroupsPerBlock * kTileRows] = largest;
    for (std::ptrdiff_t g = begin; g < end; ++g) {
      const GroupNumbers& own = numbers[static_cast<std::size_t>(g - begin)];
      const float scale = std::min(32767.0F, std::nearbyint(own.scale * scale_factor));
      out.integer_scales[pair_number_at(g)] = static_cast<std::int16_t>(scale);
      out.integer_sums[pair_number_at(g)] =
          static_cast<std::int16_t>(std::nearbyint(own.scaled_sum * sum_factor));
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
