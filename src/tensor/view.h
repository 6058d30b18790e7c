// A named tensor somewhere in memory, read-only, not owned. Rows are contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace headrace {

struct TensorView {
  std::string name;  // as in the file
  DType dtype = DType::kF32;
  std::vector<std::int64_t>
      shape;  // outermost first, as in Hugging Face: a linear layer is [out_features, in_features]
  std::span<const std::byte> data;  // exactly the tensor's bytes

  std::int64_t num_cols() const { return shape.empty() ? 1 : shape.back(); }
  std::int64_t num_rows() const {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
      rows *= shape[i];
    }
    return rows;
  }
};

}  // namespace headrace
