#include "kernels/cpu/avx2/linear_internal.h"

namespace headrace::avx2 {
namespace {

void dot(const PanelJob& job) {
  if (job.dtype <= DType::kBF16) {
    dot_float(job);
  } else {
    dot_quantized(job);
  }
}

constexpr LinearKernels kKernels = {.tier = "avx2",
                                    .small_rows = 6,
                                    .normalize_row = normalize_row,
                                    .quantize_row = quantize_row,
                                    .dot = dot,
                                    .unpack = unpack_quantized,
                                    .dot_unpacked = dot_unpacked,
                                    .finish = finish,
                                    .finish_silu = finish_silu,
                                    .finish_gelu_tanh = finish_gelu_tanh};

}  // namespace

const LinearKernels& linear_kernels() { return kKernels; }

}  // namespace headrace::avx2
