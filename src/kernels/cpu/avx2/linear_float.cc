// Panels of F32, F16 and BF16: three rows x 32 columns, 12 sums in registers.
#include <immintrin.h>

#include "kernels/cpu/avx2/linear_internal.h"

namespace headrace::avx2 {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kTileRows = 3;
constexpr int kVecs = kPanelCols / 8;

template <DType kType>
HR_INLINE __m256 load_values(const std::byte* row, std::ptrdiff_t vec) {
  if constexpr (kType == DType::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(row) + vec * 8);
  } else {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row) + vec);
    if constexpr (kType == DType::kF16) {
      return _mm256_cvtph_ps(halves);
    } else {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
    }
  }
}

template <DType kType, int kRows>
HR_INLINE void tile(const PanelJob& job, std::ptrdiff_t row_begin) {
  constexpr int kRowBytes = kPanelCols * panel_layout(kType).value_bytes;
  const float* x = job.rows.x + row_begin * job.rows.x_stride;
  float* acc = job.acc + row_begin * kPanelCols;
  __m256 sums[kRows][kVecs];
#pragma GCC unroll 4
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (std::ptrdiff_t v = 0; v < kVecs; ++v) {
      sums[m][v] = _mm256_loadu_ps(acc + m * kPanelCols + v * 8);
    }
  }
  const std::byte* row = job.panel + static_cast<std::ptrdiff_t>(job.k_begin) * kRowBytes;
  for (std::ptrdiff_t k = job.k_begin; k < job.k_end; ++k, row += kRowBytes) {
    __m256 value[kRows];
#pragma GCC unroll 4
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      value[m] = _mm256_set1_ps(x[m * job.rows.x_stride + k]);
    }
#pragma GCC unroll 4
    for (std::ptrdiff_t v = 0; v < kVecs; ++v) {
      const __m256 w = load_values<kType>(row, v);
#pragma GCC unroll 4
      for (std::ptrdiff_t m = 0; m < kRows; ++m) {
        sums[m][v] = _mm256_fmadd_ps(value[m], w, sums[m][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (std::ptrdiff_t v = 0; v < kVecs; ++v) {
      _mm256_storeu_ps(acc + m * kPanelCols + v * 8, sums[m][v]);
    }
  }
}

template <DType kType>
void dot(const PanelJob& job) {
  int row = 0;
  for (; row + kTileRows <= job.rows.num_rows; row += kTileRows) {
    tile<kType, kTileRows>(job, row);
  }
  if (job.rows.num_rows - row == 2) {
    tile<kType, 2>(job, row);
  } else if (job.rows.num_rows - row == 1) {
    tile<kType, 1>(job, row);
  }
}

template <DType kType>
void unpack(const PanelJob& job, float* values) {
  constexpr int kRowBytes = kPanelCols * panel_layout(kType).value_bytes;
  const std::byte* row = job.panel + static_cast<std::ptrdiff_t>(job.k_begin) * kRowBytes;
  for (std::ptrdiff_t k = job.k_begin; k < job.k_end; ++k, row += kRowBytes, values += kPanelCols) {
    for (std::ptrdiff_t v = 0; v < kVecs; ++v) {
      _mm256_storeu_ps(values + v * 8, load_values<kType>(row, v));
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

}  // namespace headrace::avx2
