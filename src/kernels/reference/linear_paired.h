// The scalar tier's part for weights with paired scales; linear_kernels.h says what it computes.
#pragma once

#include "kernels/cpu/linear_kernels.h"

namespace headrace::scalar {

void quantize_paired_row(const float* x, int dim, const PairedRow& out);
void dot_paired(const PanelJob& job);

}  // namespace headrace::scalar
