// Packing of 4-bit weights into panels with paired scales (paired_layout.h).
#include "kernels/cpu/paired_pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

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
  float unit = 0;
  float d = 0;  // Q4_K
  float dmin = 0;
  std::array<int, 8> scales{};  // of Q4_K the file's sc and m
  std::array<int, 8> offsets{};
};

// Scales and offsets become integers against what the largest of their block needs.
void read_legacy(DType dtype, const std::byte* src, ColumnBlock& block) {
  std::array<float, 8> scales{};
  std::array<float, 8> offsets{};
  unpack_affine_row(dtype,
                    src,
                    std::int64_t{block.num_groups} * kGroup,
                    block.codes.data(),
                    scales.data(),
                    offsets.data());
  const bool has_offsets = paired_layout(dtype).has_offsets;
  float largest = 0;
  bool finite = true;
  for (std::size_t g = 0; g < scales.size(); ++g) {
    offsets[g] = has_offsets ? offsets[g] / 8 + scales[g] : 0;  // of the codes less 8
    finite = finite && std::isfinite(scales[g]) && std::isfinite(offsets[g]);
    largest = std::max({largest, std::fabs(scales[g]), std::fabs(offsets[g])});
  }
  if (!finite) {  // a broken file's outputs are not numbers
    block.unit = std::nanf("");
    return;
  }
  block.unit = largest / static_cast<float>(has_offsets ? kMaxIntegerScale : kMaxScaleAlone);
  for (std::size_t g = 0; g < scales.size() && largest > 0; ++g) {
    block.scales[g] = static_cast<int>(std::nearbyint(scales[g] / block.unit));
    block.offsets[g] = static_cast<int>(std::nearbyint(offsets[g] / block.unit));
  }
}

void read_k_type(DType dtype, const std::byte* src, ColumnBlock& block) {
  unpack_codes_row(dtype, src, kScaleBlock, block.codes.data());
  std::array<std::int8_t, 8> scales{};
  std::array<std::uint8_t, 8> mins{};
  unpack_integer_scales_row(
      dtype, src, kScaleBlock, {&block.d, scales.data(), &block.dmin, mins.data()});
  float largest = 0;
  for (std::size_t g = 0; g < scales.size(); ++g) {
    block.scales[g] = static_cast<std::uint8_t>(scales[g]);  // 0..63
    block.offsets[g] = mins[g];
    const float scale = block.d * static_cast<float>(scales[g]);
    const float offset = scale - block.dmin / 8 * static_cast<float>(mins[g]);
    largest = std::max({largest, std::fabs(scale), std::fabs(offset)});
  }
  if (!std::isfinite(block.d) || !std::isfinite(block.dmin)) {
    block.unit = std::numeric_limits<float>::infinity();
    return;
  }
  int exponent = 0;
  if (largest > 0) {
    std::frexp(largest / static_cast<float>(kMaxIntegerScale), &exponent);  // below 2^exponent
  }
  block.unit = std::ldexp(1.0F, exponent);
}

void store_numbers(const PairedLayout& layout,
                   const ColumnBlock& block,
                   std::ptrdiff_t pair,
                   std::ptrdiff_t col,
                   std::byte* at) {
  for (std::ptrdiff_t g = 0; g < 2; ++g) {
    const auto idx = static_cast<std::size_t>(2 * pair + g);
    std::byte* offsets = at + layout.offsets_at;
    const std::ptrdiff_t place = 2 * col + g;
    if (layout.has_byte_scales) {
      at[place] = static_cast<std::byte>(block.scales[idx]);
      offsets[place] = static_cast<std::byte>(block.offsets[idx]);
      continue;
    }
    store(at + 2 * place, static_cast<std::int16_t>(block.scales[idx]));
    if (layout.has_offsets) {
      store(offsets + 2 * place, static_cast<std::int16_t>(block.offsets[idx]));
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
    store(header + 2 * col, f32_to_f16(block.d));
    store(header + 2 * (kPanelCols + col), f32_to_f16(block.dmin));
    header[std::ptrdiff_t{4} * kPanelCols + col] =
        static_cast<std::byte>(std::bit_cast<std::uint32_t>(block.unit) >> 23);
  } else {
    store(header + 4 * col, block.unit);
  }
  for (std::ptrdiff_t pair = 0; pair < (block.num_groups + 1) / 2; ++pair) {
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
  return static_cast<std::size_t>(blocks * paired_layout(dtype).header_bytes +
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
  const std::byte* offsets = pair + layout.offsets_at;
  const std::ptrdiff_t place = 2 * col + g;
  if (!layout.has_byte_scales) {
    out.unit = load<float>(header + 4 * col);
    out.scale = load<std::int16_t>(pair + 2 * place);
    out.offset = layout.has_offsets ? load<std::int16_t>(offsets + 2 * place) : 0;
    return out;
  }
  const auto exponent =
      std::to_integer<std::uint32_t>(header[std::ptrdiff_t{4} * kPanelCols + col]);
  out.unit = std::bit_cast<float>(exponent << 23);
  if (!std::isfinite(out.unit)) {
    out.scale = kMaxIntegerScale;
    return out;
  }
  const float inverse = std::bit_cast<float>((254 - exponent) << 23);
  const float d = f16_to_f32(load<std::uint16_t>(header + 2 * col)) * inverse;
  const float dmin =
      f16_to_f32(load<std::uint16_t>(header + 2 * (kPanelCols + col))) * (inverse / 8);
  const float scale = d * static_cast<float>(std::to_integer<int>(pair[place]));
  const auto m = static_cast<float>(std::to_integer<int>(offsets[place]));
  out.scale = static_cast<int>(std::nearbyint(scale));
  out.offset = static_cast<int>(std::nearbyint(std::fma(-dmin, m, scale)));
  return out;
}

}  // namespace headrace
