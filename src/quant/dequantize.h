// Rows of any stored type as floats: the values a file's bytes mean, bit for bit as the `gguf`
// Python package computes them. Reference and set-up code; kernels read codes (block_formats.h).
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace headrace {

// dst[n] from the row_bytes(dtype, n) bytes at src, n a multiple of the block size. src needs no
// alignment.
void dequantize_row(DType dtype, const std::byte* src, float* dst, std::int64_t n);

// All values of a tensor, rows one after the other: [num_rows, num_cols].
std::vector<float> dequantize(const TensorView& tensor);

}  // namespace headrace
