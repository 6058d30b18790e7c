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

void unpack(const PanelJob& job, const UnpackedPanel& out) {
  if (job.dtype <= DType::kBF16) {
    unpack_float(job, out.values);
  } else {
    unpack_quantized(job, out);
  }
}

void dot_unpacked(const PanelJob& job, const UnpackedPanel& panel) {
  if (job.dtype > DType::kBF16) {
    dot_unpacked_quantized(job, panel);
    return;
  }
  PanelJob values = job;  // F32, from its own k 0
  values.dtype = DType::kF32;
  values.panel = reinterpret_cast<const std::byte*>(panel.values);
  values.rows.x += job.k_begin;
  values.k_begin = 0;
  values.k_end = job.k_end - job.k_begin;
  dot_float(values);
}

bool unpacks(DType dtype, int num_rows) {
  switch (panel_layout(dtype).code_bits) {
    case 0:
      return dtype != DType::kF32 && num_rows > 6;
    case 4:
      return num_rows > 12;
    case 8:
      return false;  // its bytes are the codes
    default:
      return num_rows > 8;
  }
}

constexpr LinearKernels kKernels = {.tier = "avx512vnni",
                                    .unpacks = unpacks,
                                    .normalize_row = normalize_row,
                                    .quantize_row = quantize_row,
                                    .dot = dot,
                                    .unpack = unpack,
                                    .dot_unpacked = dot_unpacked,
                                    .unpack_paired_from = 13,
                                    .quantize_paired_row = quantize_paired_row,
                                    .dot_paired = dot_paired,
                                    .unpack_paired = unpack_paired,
                                    .dot_unpacked_paired = dot_unpacked_paired,
                                    .finish = finish,
                                    .finish_silu = finish_silu,
                                    .finish_gelu_tanh = finish_gelu_tanh};

}  // namespace

const LinearKernels& linear_kernels() { return kKernels; }

}  // namespace headrace::avx512vnni
