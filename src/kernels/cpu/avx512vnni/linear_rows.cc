// Rows of a linear layer before and after the product: RMSNorm, quantization, bias, residual,
// gates. Operation for operation the scalar tier's arithmetic.
#include <immintrin.h>

#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

HR_INLINE __mmask16 first_lanes(std::ptrdiff_t n) { return static_cast<__mmask16>((1U << n) - 1U); }

// lanes i and i + 8, then i + 4, i + 2, i + 1: the scalar tier's order.
HR_INLINE float add_lanes(__m512 v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

HR_INLINE float max_lanes(__m512 v) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// As exp_f32() of the scalar tier.
HR_INLINE __m512 exp_ps(__m512 x) {
  const __m512 held =
      _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(88.0F)), _mm512_set1_ps(-87.0F));
  const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(held, _mm512_set1_ps(1.44269504F)));
  const __m512 whole = _mm512_cvtepi32_ps(n);
  __m512 r = _mm512_fmadd_ps(whole, _mm512_set1_ps(-0.693359375F), held);
  r = _mm512_fmadd_ps(whole, _mm512_set1_ps(2.12194440e-4F), r);
  __m512 p = _mm512_set1_ps(1.0F / 5040);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 720));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  const __m512i power = _mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23);
  return _mm512_mul_ps(p, _mm512_castsi512_ps(power));
}

HR_INLINE __m512 negate(__m512 x) { return _mm512_xor_ps(x, _mm512_set1_ps(-0.0F)); }

HR_INLINE __m512 silu(__m512 x) {
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0F), exp_ps(negate(x))));
}

HR_INLINE __m512 gelu_tanh(__m512 x) {
  const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
  const __m512 y = _mm512_mul_ps(_mm512_set1_ps(0.797884561F),
                                 _mm512_fmadd_ps(_mm512_set1_ps(0.044715F), cube, x));
  const __m512 e = exp_ps(_mm512_mul_ps(_mm512_set1_ps(-2.0F), y));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0F), e));
}

HR_INLINE __m512 segment_sum(const FinishJob& job, const float* acc) {
  const __m512 first = _mm512_loadu_ps(acc);
  if (job.num_segments == 1) {
    return first;
  }
  if (job.num_segments == 2) {
    return _mm512_add_ps(first, _mm512_loadu_ps(acc + job.segment_stride));
  }
  const __m512 low = _mm512_add_ps(first, _mm512_loadu_ps(acc + job.segment_stride));
  const __m512 high = _mm512_add_ps(_mm512_loadu_ps(acc + 2 * job.segment_stride),
                                    _mm512_loadu_ps(acc + 3 * job.segment_stride));
  return _mm512_add_ps(low, high);
}

enum class Gate { kSilu, kGeluTanh };

template <Gate kGate>
HR_INLINE void finish_gated(const FinishJob& job) {
  for (std::ptrdiff_t m = 0; m < job.num_rows; ++m) {
    for (std::ptrdiff_t col = 0; col < job.num_cols; col += 16) {
      const __mmask16 mask = job.num_cols - col >= 16 ? 0xFFFF : first_lanes(job.num_cols - col);
      const __m512 gate = segment_sum(job, job.acc + m * job.row_stride + col);
      const __m512 up = segment_sum(job, job.up_acc + m * job.row_stride + col);
      const __m512 active = kGate == Gate::kSilu ? silu(gate) : gelu_tanh(gate);
      _mm512_mask_storeu_ps(job.out + m * job.out_stride + col, mask, _mm512_mul_ps(active, up));
    }
  }
}

}  // namespace

void normalize_row(const float* x, const float* weight, float eps, int dim, float* y) {
  __m512 squares = _mm512_setzero_ps();
  for (std::ptrdiff_t k = 0; k < dim; k += 16) {
    const __mmask16 mask = dim - k >= 16 ? 0xFFFF : first_lanes(dim - k);
    const __m512 value = _mm512_maskz_loadu_ps(mask, x + k);
    squares = _mm512_fmadd_ps(value, value, squares);
  }
  const float mean = add_lanes(squares) / static_cast<float>(dim);
  const __m512 inverse = _mm512_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps))));
  for (std::ptrdiff_t k = 0; k < dim; k += 16) {
    const __mmask16 mask = dim - k >= 16 ? 0xFFFF : first_lanes(dim - k);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + k), inverse);
    _mm512_mask_storeu_ps(
        y + k, mask, _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(mask, weight + k)));
  }
}

void quantize_row(const float* x, int dim, std::int8_t* codes, float* scales, std::int32_t* sums) {
  const __m256i ones = _mm256_set1_epi8(1);
  for (std::ptrdiff_t g = 0; g < dim / kGroup; ++g) {
    const __m512 low = _mm512_loadu_ps(x + g * kGroup);
    const __m512 high = _mm512_loadu_ps(x + g * kGroup + 16);
    const float amax = max_lanes(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
    const bool zero = !(amax >= 1e-30F);
    scales[g] = zero ? 0.0F : amax / 127.0F;
    const __m512 inverse = _mm512_set1_ps(zero ? 0.0F : 127.0F / amax);
    const __m128i low_codes =
        _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(low, inverse)));
    const __m128i high_codes =
        _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(high, inverse)));
    const __m256i both = _mm256_set_m128i(high_codes, low_codes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + g * kGroup), both);
    // Four partial sums of each half, then their sum in the lowest lane of the half.
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones, both);
    sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4E));
    sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xB1));
    sums[2 * g] = _mm_cvtsi128_si32(_mm256_castsi256_si128(sum));
    sums[2 * g + 1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(sum, 1));
  }
}

void finish(const FinishJob& job) {
  for (std::ptrdiff_t m = 0; m < job.num_rows; ++m) {
    for (std::ptrdiff_t col = 0; col < job.num_cols; col += 16) {
      const __mmask16 mask = job.num_cols - col >= 16 ? 0xFFFF : first_lanes(job.num_cols - col);
      float* out = job.out + m * job.out_stride + col;
      __m512 value = segment_sum(job, job.acc + m * job.row_stride + col);
      if (job.bias != nullptr) {
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, job.bias + col));
      }
      if (job.add_to_out) {
        value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), value);
      }
      _mm512_mask_storeu_ps(out, mask, value);
    }
  }
}

void finish_silu(const FinishJob& job) { finish_gated<Gate::kSilu>(job); }
void finish_gelu_tanh(const FinishJob& job) { finish_gated<Gate::kGeluTanh>(job); }

}  // namespace headrace::avx512vnni
