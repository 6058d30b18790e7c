// Packing of 4-bit weights into panels with paired scales (paired_layout.h).
#include "kernels/cpu/paired_pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/paired_layout.h"
#include "quant/block_formats.h"
#include "tensor/half.h"

namespace headrace {
namespace {

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

template <typename T>
T load(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// One column of a block: up to eight groups.
struct ColumnBlock {
  int num_groups = 0;
  std::array<std::uint8_t, kScaleBlock> codes{};
  float header[2] = {};  // unit, or d and dmin
  std::array<std::int16_t, 8> scales{};
  std::array<float, 8> offsets{};
};

// Scales become integers against the largest of their block.
void read_legacy(DType dtype, const std::byte* src, ColumnBlock& block) {
  std::array<float, 8> scales{};
  unpack_affine_row(dtype,
                    src,
                    std::int64_t{block.num_groups} * kGroup,
                    block.codes.data(),
                    scales.data(),
                    block.offsets.data());
  float largest = 0;
  bool finite = true;
  for (const float scale : scales) {
    finite = finite && std::isfinite(scale);
    largest = std::max(largest, std::fabs(scale));
  }
  if (!finite) {  // a broken file's outputs are not numbers
    block.header[0] = std::nanf("");
    return;
  }
  block.header[0] = largest / static_cast<float>(kMaxIntegerScale);
  for (std::size_t g = 0; g < scales.size() && largest > 0; ++g) {
    block.scales[g] = static_cast<std::int16_t>(std::nearbyint(scales[g] / block.header[0]));
  }
}

void read_k_type(DType dtype, const std::byte* src, ColumnBlock& block) {
  unpack_codes_row(dtype, src, kScaleBlock, block.codes.data());
  std::array<std::int8_t, 8> scales{};
  std::array<std::uint8_t, 8> mins{};
  unpack_integer_scales_row(
      dtype, src, kScaleBlock, {block.header, scales.data(), block.header + 1, mins.data()});
  for (std::size_t g = 0; g < scales.size(); ++g) {
    block.scales[g] = scales[g];
    block.offsets[g] = mins[g];
  }
}

void store_numbers(const PairedLayout& layout,
                   const ColumnBlock& block,
                   int pair,
                   std::ptrdiff_t col,
                   std::byte* at) {
  for (int g = 0; g < 2; ++g) {
    const auto idx = static_cast<std::size_t>(2 * pair + g);
    std::byte* offset = at + layout.offsets_at;
    if (layout.has_byte_scales) {
      at[2 * col + g] = static_cast<std::byte>(block.scales[idx]);
      offset[g * kPanelCols + col] =
          static_cast<std::byte>(static_cast<std::uint8_t>(block.offsets[idx]));
      continue;
    }
    store(at + 4 * col + std::ptrdiff_t{2} * g, block.scales[idx]);
    if (layout.has_offsets) {
      store(offset + 2 * (g * kPanelCols + col), f32_to_f16(block.offsets[idx]));
    }
  }
}

void store_column(DType dtype,
                  const ColumnBlock& block,
                  std::ptrdiff_t first_pair,
                  std::ptrdiff_t col,
                  std::byte* panel) {
  const PairedLayout layout = paired_layout(dtype);
  std::byte* header = panel + layout.header_at(first_pair);
  if (layout.has_byte_scales) {
    store(header + 2 * col, f32_to_f16(block.header[0]));
    store(header + 2 * (kPanelCols + col), f32_to_f16(block.header[1]));
  } else {
    store(header + 4 * col, block.header[0]);
  }
  for (int pair = 0; pair < (block.num_groups + 1) / 2; ++pair) {
    std::byte* at = panel + layout.pair_at(first_pair + pair);
    store_numbers(layout, block, pair, col, at);
    for (std::ptrdiff_t step = 0; step < 4; ++step) {
      for (std::ptrdiff_t g = 0; g < 2; ++g) {
        const std::uint8_t* codes = block.codes.data() + pair * kPair + g * kGroup + step * 4;
        std::uint32_t low = 0;
        std::uint32_t high = 0;
        std::memcpy(&low, codes, sizeof(low));
        std::memcpy(&high, codes + 16, sizeof(high));
        store(at + layout.codes_at + step * kPairedRowBytes + paired_column_at(col) + g * 4,
              low | high << 4);
      }
    }
  }
}

}  // namespace

std::size_t paired_panel_bytes(DType dtype, int num_cols) {
  const int pairs = (num_cols + kPair - 1) / kPair;
  const int blocks = (pairs + kPairsPerBlock - 1) / kPairsPerBlock;
  return static_cast<std::size_t>(blocks * kPairedHeaderBytes +
                                  pairs * paired_layout(dtype).pair_bytes);
}

void pack_paired_column(
    DType dtype, const std::byte* src, int num_cols, std::ptrdiff_t col, std::byte* panel) {
  for (int k = 0; k < num_cols; k += kScaleBlock) {
    ColumnBlock block;
    block.num_groups = std::min(kScaleBlock, num_cols - k) / kGroup;
    const std::byte* from = src + row_bytes(dtype, k);
    if (has_integer_scales(dtype)) {
      read_k_type(dtype, from, block);
    } else {
      read_legacy(dtype, from, block);
    }
    store_column(dtype, block, k / kPair, col, panel);
  }
}

PairedColumn read_paired_column(DType dtype,
                                const std::byte* panel,
                                std::ptrdiff_t group_idx,
                                std::ptrdiff_t col) {
  const PairedLayout layout = paired_layout(dtype);
  const std::byte* header = panel + layout.header_at(group_idx / 2);
  const std::byte* pair = panel + layout.pair_at(group_idx / 2);
  const std::ptrdiff_t g = group_idx % 2;
  PairedColumn out;
  const std::byte* rows = pair + layout.codes_at + paired_column_at(col) + g * 4;
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    const std::ptrdiff_t step = k / 4;
    const auto both = std::to_integer<unsigned>(rows[step % 4 * kPairedRowBytes + k % 4]);
    out.codes[static_cast<std::size_t>(k)] =
        static_cast<std::uint8_t>(step < 4 ? both & 15U : both >> 4);
  }
  const std::byte* offset = pair + layout.offsets_at;
  float least = 0;
  if (layout.has_byte_scales) {
    out.unit = f16_to_f32(load<std::uint16_t>(header + 2 * col)) / 128;
    out.scale = 128 * std::to_integer<int>(pair[2 * col + g]);
    const float dmin = f16_to_f32(load<std::uint16_t>(header + 2 * (kPanelCols + col)));
    least = -(dmin * static_cast<float>(std::to_integer<int>(offset[g * kPanelCols + col])));
  } else {
    out.unit = load<float>(header + 4 * col);
    out.scale = load<std::int16_t>(pair + 4 * col + 2 * g);
    if (layout.has_offsets) {
      least = f16_to_f32(load<std::uint16_t>(offset + 2 * (g * kPanelCols + col)));
    }
  }
  out.offset =
      layout.has_offsets ? std::fma(8 * out.unit, static_cast<float>(out.scale), least) : 0;
  return out;
}

}  // namespace headrace
