// Rows of a linear layer before and after the product: RMSNorm, quantization, bias, residual,
// gates. Operation for operation the scalar tier's arithmetic.
#include <immintrin.h>

#include "kernels/cpu/avx2/linear_internal.h"

namespace headrace::avx2 {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

HR_INLINE __m256i first_lanes(std::ptrdiff_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

HR_INLINE __m256 absolute(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x); }

// Lanes i and i + 4, then i + 2, i + 1.
HR_INLINE float add_lanes(__m256 eight) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

HR_INLINE float max_lanes(__m256 eight) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

HR_INLINE std::int32_t add_lanes(__m256i eight) {
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

// As exp_f32() of the scalar tier.
HR_INLINE __m256 exp_ps(__m256 x) {
  const __m256 held =
      _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(88.0F)), _mm256_set1_ps(-87.0F));
  const __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(held, _mm256_set1_ps(1.44269504F)));
  const __m256 whole = _mm256_cvtepi32_ps(n);
  __m256 r = _mm256_fmadd_ps(whole, _mm256_set1_ps(-0.693359375F), held);
  r = _mm256_fmadd_ps(whole, _mm256_set1_ps(2.12194440e-4F), r);
  __m256 p = _mm256_set1_ps(1.0F / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

HR_INLINE __m256 silu(__m256 x) {
  const __m256 e = exp_ps(_mm256_xor_ps(x, _mm256_set1_ps(-0.0F)));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
}

HR_INLINE __m256 gelu_tanh(__m256 x) {
  const __m256 cube = _mm256_mul_ps(_mm256_mul_ps(x, x), x);
  const __m256 y = _mm256_mul_ps(_mm256_set1_ps(0.797884561F),
                                 _mm256_fmadd_ps(_mm256_set1_ps(0.044715F), cube, x));
  const __m256 e = exp_ps(_mm256_mul_ps(_mm256_set1_ps(-2.0F), y));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
}

HR_INLINE __m256 segment_sum(const FinishJob& job, const float* acc) {
  const __m256 first = _mm256_loadu_ps(acc);
  if (job.num_segments == 1) {
    return first;
  }
  if (job.num_segments == 2) {
    return _mm256_add_ps(first, _mm256_loadu_ps(acc + job.segment_stride));
  }
  const __m256 low = _mm256_add_ps(first, _mm256_loadu_ps(acc + job.segment_stride));
  const __m256 high = _mm256_add_ps(_mm256_loadu_ps(acc + 2 * job.segment_stride),
                                    _mm256_loadu_ps(acc + 3 * job.segment_stride));
  return _mm256_add_ps(low, high);
}

enum class Gate { kSilu, kGeluTanh };

template <Gate kGate>
HR_INLINE void finish_gated(const FinishJob& job) {
  for (std::ptrdiff_t m = 0; m < job.num_rows; ++m) {
    for (std::ptrdiff_t col = 0; col < job.num_cols; col += 8) {
      const __m256 gate = segment_sum(job, job.acc + m * job.row_stride + col);
      const __m256 up = segment_sum(job, job.up_acc + m * job.row_stride + col);
      const __m256 active = kGate == Gate::kSilu ? silu(gate) : gelu_tanh(gate);
      _mm256_maskstore_ps(job.out + m * job.out_stride + col,
                          first_lanes(job.num_cols - col),
                          _mm256_mul_ps(active, up));
    }
  }
}

HR_INLINE __m128i narrow(__m256i a, __m256i b) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
  return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

}  // namespace

void normalize_row(const float* x, const float* weight, float eps, int dim, float* y) {
  __m256 low = _mm256_setzero_ps();
  __m256 high = _mm256_setzero_ps();
  for (std::ptrdiff_t k = 0; k < dim; k += 16) {
    const __m256 a = _mm256_maskload_ps(x + k, first_lanes(dim - k));
    low = _mm256_fmadd_ps(a, a, low);
    if (dim - k > 8) {
      const __m256 b = _mm256_maskload_ps(x + k + 8, first_lanes(dim - k - 8));
      high = _mm256_fmadd_ps(b, b, high);
    }
  }
  const float mean = add_lanes(_mm256_add_ps(low, high)) / static_cast<float>(dim);
  const __m256 inverse = _mm256_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps))));
  for (std::ptrdiff_t k = 0; k < dim; k += 8) {
    const __m256i mask = first_lanes(dim - k);
    const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + k, mask), inverse);
    _mm256_maskstore_ps(y + k, mask, _mm256_mul_ps(scaled, _mm256_maskload_ps(weight + k, mask)));
  }
}

void quantize_row(const float* x, int dim, std::int8_t* codes, float* scales, std::int32_t* sums) {
  for (std::ptrdiff_t g = 0; g < dim / kGroup; ++g) {
    __m256 v[4];
    __m256 largest = _mm256_setzero_ps();
    for (std::ptrdiff_t i = 0; i < 4; ++i) {
      v[i] = _mm256_loadu_ps(x + g * kGroup + i * 8);
      largest = _mm256_max_ps(largest, absolute(v[i]));
    }
    const float amax = max_lanes(largest);
    const bool zero = !(amax >= 1e-30F);
    scales[g] = zero ? 0.0F : amax / 127.0F;
    const __m256 inverse = _mm256_set1_ps(zero ? 0.0F : 127.0F / amax);
    __m256i q[4];
    for (std::ptrdiff_t i = 0; i < 4; ++i) {
      q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + g * kGroup), narrow(q[0], q[1]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + g * kGroup + 16), narrow(q[2], q[3]));
    sums[2 * g] = add_lanes(_mm256_add_epi32(q[0], q[1]));
    sums[2 * g + 1] = add_lanes(_mm256_add_epi32(q[2], q[3]));
  }
}

void finish(const FinishJob& job) {
  for (std::ptrdiff_t m = 0; m < job.num_rows; ++m) {
    for (std::ptrdiff_t col = 0; col < job.num_cols; col += 8) {
      const __m256i mask = first_lanes(job.num_cols - col);
      float* out = job.out + m * job.out_stride + col;
      __m256 value = segment_sum(job, job.acc + m * job.row_stride + col);
      if (job.bias != nullptr) {
        value = _mm256_add_ps(value, _mm256_maskload_ps(job.bias + col, mask));
      }
      if (job.add_to_out) {
        value = _mm256_add_ps(_mm256_maskload_ps(out, mask), value);
      }
      _mm256_maskstore_ps(out, mask, value);
    }
  }
}

void finish_silu(const FinishJob& job) { finish_gated<Gate::kSilu>(job); }
void finish_gelu_tanh(const FinishJob& job) { finish_gated<Gate::kGeluTanh>(job); }

}  // namespace headrace::avx2
