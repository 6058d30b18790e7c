// The scalar tier of linear layers: plain code for any machine, and what every other tier must
// equal bit for bit.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/panel_access.h"
#include "kernels/reference/linear_paired.h"

namespace headrace::scalar {
namespace {

constexpr int kLanes = 16;

// exp by 2^n * e^r, |r| <= ln(2) / 2, the Taylor sum up to r^7: relative error below 3e-7. x is
// held in [-87, 88].
float exp_f32(float x) {
  const float held = std::max(-87.0F, std::min(88.0F, x));
  const float n = std::nearbyint(held * 1.44269504F);
  float r = std::fma(n, -0.693359375F, held);
  r = std::fma(n, 2.12194440e-4F, r);
  float p = 1.0F / 5040;
  p = std::fma(p, r, 1.0F / 720);
  p = std::fma(p, r, 1.0F / 120);
  p = std::fma(p, r, 1.0F / 24);
  p = std::fma(p, r, 1.0F / 6);
  p = std::fma(p, r, 0.5F);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

float silu(float x) { return x / (1.0F + exp_f32(-x)); }

// 0.5 x (1 + tanh(y)), y = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + exp(-2 y)).
float gelu_tanh(float x) {
  const float cube = x * x * x;
  const float y = 0.797884561F * std::fma(0.044715F, cube, x);
  return x / (1.0F + exp_f32(-2.0F * y));
}

void normalize_row(const float* x, const float* weight, float eps, int dim, float* y) {
  std::array<float, kLanes> lanes{};
  for (int k = 0; k < dim; ++k) {
    lanes[k % kLanes] = std::fma(x[k], x[k], lanes[k % kLanes]);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  const float inverse = 1.0F / std::sqrt(lanes[0] / static_cast<float>(dim) + eps);
  for (int k = 0; k < dim; ++k) {
    y[k] = x[k] * inverse * weight[k];
  }
}

void quantize_row(const float* x, int dim, std::int8_t* codes, float* scales, std::int32_t* sums) {
  for (std::ptrdiff_t g = 0; g < dim / kGroup; ++g) {
    const float* values = x + g * kGroup;
    float amax = 0;
    for (int k = 0; k < kGroup; ++k) {
      amax = std::max(amax, std::fabs(values[k]));
    }
    const bool zero = !(amax >= 1e-30F);
    const float inverse = zero ? 0.0F : 127.0F / amax;
    scales[g] = zero ? 0.0F : amax / 127.0F;
    sums[2 * g] = 0;
    sums[2 * g + 1] = 0;
    for (int k = 0; k < kGroup; ++k) {
      const float scaled = zero ? 0.0F : std::max(-127.0F, std::min(127.0F, values[k] * inverse));
      const auto code = static_cast<std::int8_t>(std::nearbyint(scaled));
      codes[g * kGroup + k] = code;
      sums[2 * g + k / 16] += code;
    }
  }
}

int dot16(const std::uint8_t* weights, const std::int8_t* codes) {
  int sum = 0;
  for (int k = 0; k < 16; ++k) {
    sum += weights[k] * codes[k];
  }
  return sum;
}

// One group of one column against every row.
void dot_group(const PanelJob& job, int group_idx, int col, const GroupColumn& group) {
  const PanelLayout layout = panel_layout(job.dtype);
  const RowsView& rows = job.rows;
  for (int m = 0; m < rows.num_rows; ++m) {
    const std::int8_t* codes =
        rows.codes + m * rows.code_stride + static_cast<std::ptrdiff_t>(group_idx) * kGroup;
    const int low = dot16(group.codes.data(), codes);
    const int high = dot16(group.codes.data() + 16, codes + 16);
    const float scale = rows.scales[m * rows.group_stride + group_idx];
    float& acc = job.acc[static_cast<std::ptrdiff_t>(m) * kPanelCols + col];
    if (layout.scales_per_group == 2) {
      const std::int32_t* zero =
          rows.zero_terms + m * rows.term_stride + static_cast<std::ptrdiff_t>(group_idx) * 2;
      float t = static_cast<float>(low + zero[0]) * group.scales[0];
      t = std::fma(static_cast<float>(high + zero[1]), group.scales[1], t);
      acc = std::fma(t, scale, acc);
    } else if (layout.has_offsets) {
      acc = std::fma(static_cast<float>(low + high), group.scales[0] * scale, acc);
      acc = std::fma(group.offset, rows.scaled_sums[m * rows.group_stride + group_idx], acc);
    } else {
      const std::int32_t zero = rows.zero_terms[m * rows.term_stride + group_idx];
      acc = std::fma(static_cast<float>(low + high + zero), group.scales[0] * scale, acc);
    }
  }
}

void dot_floats(const PanelJob& job) {
  const RowsView& rows = job.rows;
  for (int k = job.k_begin; k < job.k_end; ++k) {
    for (int col = 0; col < kPanelCols; ++col) {
      const float w = read_float_value(job.dtype, job.panel, k, col);
      for (std::ptrdiff_t m = 0; m < rows.num_rows; ++m) {
        float& acc = job.acc[m * kPanelCols + col];
        acc = std::fma(rows.x[m * rows.x_stride + k], w, acc);
      }
    }
  }
}

void dot(const PanelJob& job) {
  if (panel_layout(job.dtype).code_bits == 0) {
    dot_floats(job);
    return;
  }
  for (int g = job.k_begin / kGroup; g < job.k_end / kGroup; ++g) {
    for (int col = 0; col < kPanelCols; ++col) {
      dot_group(job, g, col, read_group_column(job.dtype, job.panel, g, col));
    }
  }
}

float segment_sum(const FinishJob& job, const float* acc, int row, int col) {
  const float* first = acc + row * job.row_stride + col;
  if (job.num_segments == 1) {
    return *first;
  }
  if (job.num_segments == 2) {
    return first[0] + first[job.segment_stride];
  }
  return (first[0] + first[job.segment_stride]) +
         (first[2 * job.segment_stride] + first[3 * job.segment_stride]);
}

template <typename Fn>
void for_outputs(const FinishJob& job, Fn&& fn) {
  for (int m = 0; m < job.num_rows; ++m) {
    for (int col = 0; col < job.num_cols; ++col) {
      fn(m, col, job.out[m * job.out_stride + col]);
    }
  }
}

void finish(const FinishJob& job) {
  for_outputs(job, [&job](int m, int col, float& out) {
    float value = segment_sum(job, job.acc, m, col);
    value = job.bias == nullptr ? value : value + job.bias[col];
    out = job.add_to_out ? out + value : value;
  });
}

void finish_silu(const FinishJob& job) {
  for_outputs(job, [&job](int m, int col, float& out) {
    out = silu(segment_sum(job, job.acc, m, col)) * segment_sum(job, job.up_acc, m, col);
  });
}

void finish_gelu_tanh(const FinishJob& job) {
  for_outputs(job, [&job](int m, int col, float& out) {
    out = gelu_tanh(segment_sum(job, job.acc, m, col)) * segment_sum(job, job.up_acc, m, col);
  });
}

constexpr LinearKernels kKernels = {.tier = "scalar",
                                    .normalize_row = normalize_row,
                                    .quantize_row = quantize_row,
                                    .dot = dot,
                                    .quantize_paired_row = quantize_paired_row,
                                    .dot_paired = dot_paired,
                                    .finish = finish,
                                    .finish_silu = finish_silu,
                                    .finish_gelu_tanh = finish_gelu_tanh};

}  // namespace

const LinearKernels& linear_kernels() { return kKernels; }

}  // namespace headrace::scalar
