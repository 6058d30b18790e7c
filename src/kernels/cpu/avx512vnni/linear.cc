#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

void dot(const PanelJob& job) {
  if (job.dtype <= DType::kBF16) {
    dot_float(job);
  } else {
    dot_quantized(job);
  }
}

constexpr LinearKernels kKernels = {.tier = "avx512vnni",
                                    .small_rows = 12,
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

}  // namespace headrace::avx512vnni
