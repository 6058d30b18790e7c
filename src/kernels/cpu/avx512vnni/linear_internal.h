// The parts of this tier's linear kernels, one per file. See linear_kernels.h for what each does.
#pragma once

#include "kernels/cpu/linear_kernels.h"

namespace headrace::avx512vnni {

void dot_quantized(const PanelJob& job);
void unpack_quantized(const PanelJob& job, const UnpackedPanel& out);
void dot_unpacked_quantized(const PanelJob& job, const UnpackedPanel& panel);
void quantize_paired_row(const float* x, int dim, const PairedRow& out);
void dot_paired(const PanelJob& job);
void unpack_paired(const PanelJob& job, const UnpackedPairs& out);
void dot_unpacked_paired(const PanelJob& job, const UnpackedPairs& panel);
void dot_float(const PanelJob& job);
void unpack_float(const PanelJob& job, float* values);
void normalize_row(const float* x, const float* weight, float eps, int dim, float* y);
void quantize_row(const float* x, int dim, std::int8_t* codes, float* scales, std::int32_t* sums);
void finish(const FinishJob& job);
void finish_silu(const FinishJob& job);
void finish_gelu_tanh(const FinishJob& job);

}  // namespace headrace::avx512vnni
