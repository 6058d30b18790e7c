// Weights with paired scales, as bytes: sizes and packing. Pure; pool workers call it, each for its
// own panel.
#pragma once

#include <cstddef>

#include "tensor/dtype.h"

namespace headrace {

// Of a panel over num_cols of K, a multiple of the type's block.
std::size_t paired_panel_bytes(DType dtype, int num_cols);

// One output's row of the file to its place in a zeroed panel.
void pack_paired_column(
    DType dtype, const std::byte* src, int num_cols, std::ptrdiff_t col, std::byte* panel);

}  // namespace headrace
