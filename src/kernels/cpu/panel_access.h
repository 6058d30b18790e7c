// Single values of a packed panel, in plain code: for rows of an embedding, for the scalar tier and
// for tests. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/panel_layout.h"

namespace headrace {

// 32 neighbouring k of one output: w = scales[k / 16] * (code - zero_point), or scale * code +
// offset.
struct GroupColumn {
  std::array<std::uint8_t, kGroup> codes{};
  std::array<float, 2> scales{};
  float offset = 0;
};

// `panel` is of a quantized type; group_idx counts groups of 32 from its start.
GroupColumn read_group_column(DType dtype,
                              const std::byte* panel,
                              std::ptrdiff_t group_idx,
                              std::ptrdiff_t col);

// `panel` is of a float type.
float read_float_value(DType dtype, const std::byte* panel, int k, int col);

}  // namespace headrace
