// Panels of F32, F16 and BF16: rows x 32 columns, 12 sums in registers; x is broadcast by the load
// port, and a panel is read once for each six rows.
#include <immintrin.h>

#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kTileRows = 6;

template <DType kType>
HR_INLINE __m512 load_values(const std::byte* row, std::ptrdiff_t vec) {
  if constexpr (kType == DType::kF32) {
    return _mm512_loadu_ps(reinterpret_cast<const float*>(row) + vec * 16);
  } else {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row) + vec);
    if constexpr (kType == DType::kF16) {
      return _mm512_cvtph_ps(halves);
    } else {
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    }
  }
}

template <DType kType, int kRows>
HR_INLINE void tile(const PanelJob& job, std::ptrdiff_t row_begin) {
  constexpr int kRowBytes = kPanelCols * panel_layout(kType).value_bytes;
  const float* x = job.rows.x + row_begin * job.rows.x_stride;
  float* acc = job.acc + row_begin * kPanelCols;
  __m512 sums[kRows][2];
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    sums[m][0] = _mm512_loadu_ps(acc + m * kPanelCols);
    sums[m][1] = _mm512_loadu_ps(acc + m * kPanelCols + 16);
  }
  const std::byte* row = job.panel + static_cast<std::ptrdiff_t>(job.k_begin) * kRowBytes;
  for (std::ptrdiff_t k = job.k_begin; k < job.k_end; ++k, row += kRowBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(row) + 4096, _MM_HINT_T0);
    if constexpr (kType == DType::kF32) {
      _mm_prefetch(reinterpret_cast<const char*>(row) + 4160, _MM_HINT_T0);
    }
    const __m512 w0 = load_values<kType>(row, 0);
    const __m512 w1 = load_values<kType>(row, 1);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const __m512 value = _mm512_set1_ps(x[m * job.rows.x_stride + k]);
      sums[m][0] = _mm512_fmadd_ps(value, w0, sums[m][0]);
      sums[m][1] = _mm512_fmadd_ps(value, w1, sums[m][1]);
    }
  }
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    _mm512_storeu_ps(acc + m * kPanelCols, sums[m][0]);
    _mm512_storeu_ps(acc + m * kPanelCols + 16, sums[m][1]);
  }
}

template <DType kType>
void dot(const PanelJob& job) {
  int row = 0;
  for (; row + kTileRows <= job.rows.num_rows; row += kTileRows) {
    tile<kType, kTileRows>(job, row);
  }
  switch (job.rows.num_rows - row) {
    case 5:
      return tile<kType, 5>(job, row);
    case 4:
      return tile<kType, 4>(job, row);
    case 3:
      return tile<kType, 3>(job, row);
    case 2:
      return tile<kType, 2>(job, row);
    case 1:
      return tile<kType, 1>(job, row);
    default:
      return;
  }
}

template <DType kType>
void unpack(const PanelJob& job, float* values) {
  constexpr int kRowBytes = kPanelCols * panel_layout(kType).value_bytes;
  const std::byte* row = job.panel + static_cast<std::ptrdiff_t>(job.k_begin) * kRowBytes;
  for (std::ptrdiff_t k = job.k_begin; k < job.k_end; ++k, row += kRowBytes, values += kPanelCols) {
    for (std::ptrdiff_t v = 0; v < 2; ++v) {
      _mm512_storeu_ps(values + v * 16, load_values<kType>(row, v));
    }
  }
}

}  // namespace

void dot_float(const PanelJob& job) {
  switch (job.dtype) {
    case DType::kF32:
      return dot<DType::kF32>(job);
    case DType::kF16:
      return dot<DType::kF16>(job);
    default:
      return dot<DType::kBF16>(job);
  }
}

void unpack_float(const PanelJob& job, float* values) {
  if (job.dtype == DType::kF16) {
    unpack<DType::kF16>(job, values);
  } else {
    unpack<DType::kBF16>(job, values);
  }
}

}  // namespace headrace::avx512vnni
