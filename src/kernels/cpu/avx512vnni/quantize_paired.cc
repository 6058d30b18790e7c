// Rows for weights with paired scales: eight groups at a time, so that their maxima, scales and
// inverses are one vector each. Operation for operation the scalar tier's arithmetic.
#include <immintrin.h>

#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kGroupsPerBlock = 2 * kPairsPerBlock;

HR_INLINE __m512 larger_lanes(__m512 a, __m512 b) {
  return _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
}

// The largest magnitude of each of eight groups, in their order.
HR_INLINE __m256 group_maxima(const float* x) {
  __m512 group[kGroupsPerBlock];
#pragma GCC unroll 8
  for (std::ptrdiff_t g = 0; g < kGroupsPerBlock; ++g) {
    const __m512 low = _mm512_abs_ps(_mm512_loadu_ps(x + g * kGroup));
    group[g] = _mm512_max_ps(low, _mm512_abs_ps(_mm512_loadu_ps(x + g * kGroup + 16)));
  }
  // Four lanes of 128 bits to one: lane i of `a` is group i, of `b` group 4 + i.
  const __m512 a = larger_lanes(larger_lanes(group[0], group[1]), larger_lanes(group[2], group[3]));
  const __m512 b = larger_lanes(larger_lanes(group[4], group[5]), larger_lanes(group[6], group[7]));
  __m512 both = _mm512_max_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
  both = _mm512_max_ps(_mm512_permute_ps(both, 0x08), _mm512_permute_ps(both, 0x0D));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm512_castps512_ps256(_mm512_permutexvar_ps(order, both));
}

HR_INLINE float largest_of(__m256 v) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

HR_INLINE __m512i round_codes(const float* x, float inverse) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(inverse)));
}

// Codes of two groups, and the sum of each in its 32-bit lane of the result.
HR_INLINE __m128i quantize_pair(const float* x, const float* inverses, std::int8_t* codes) {
  const __m512i low =
      _mm512_packs_epi32(round_codes(x, inverses[0]), round_codes(x + 16, inverses[0]));
  const __m512i high =
      _mm512_packs_epi32(round_codes(x + 32, inverses[1]), round_codes(x + 48, inverses[1]));
  // Now 128-bit lane i holds steps i and 4 + i of the first group, then of the second.
  const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  const __m512i both = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
  _mm512_storeu_si512(codes, both);
  const __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), both);
  const __m256i four =
      _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
  const __m128i two =
      _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
  return _mm_add_epi32(two, _mm_unpackhi_epi64(two, two));
}

HR_INLINE void round_to_16_bits(__m256 values, std::int32_t* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm256_cvtsepi32_epi16(_mm256_cvtps_epi32(values)));
}

// The first num_pairs of a block of x, which has room for all.
HR_INLINE void quantize_block(const float* x, std::ptrdiff_t num_pairs, const PairedRow& out) {
  const __m256 maxima = group_maxima(x);
  const __mmask8 some = _mm256_cmp_ps_mask(maxima, _mm256_set1_ps(1e-30F), _CMP_GE_OQ);
  const __m256 scales = _mm256_maskz_div_ps(some, maxima, _mm256_set1_ps(127.0F));
  alignas(32) float inverses[kGroupsPerBlock];
  _mm256_store_ps(inverses, _mm256_maskz_div_ps(some, _mm256_set1_ps(127.0F), maxima));
  const float largest = largest_of(scales);
  const float scale_factor = largest > 0 ? 32768.0F / largest : 0.0F;
  const float sum_factor = largest > 0 ? 8.0F / largest : 0.0F;
  *out.units = largest;
  alignas(32) std::int32_t sums[kGroupsPerBlock] = {};
  for (std::ptrdiff_t pair = 0; pair < num_pairs; ++pair) {
    const std::ptrdiff_t at = pair * kTileRows;
    const __m128i both =
        quantize_pair(x + pair * kPair, inverses + 2 * pair, out.codes + at * kPair);
    const __m128i zero_terms = _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(both, 3));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(sums + 2 * pair), both);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out.zero_terms + 2 * at), zero_terms);
  }
  const __m256i all = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums));
  const __m256 scaled_sums = _mm256_mul_ps(scales, _mm256_cvtepi32_ps(all));
  std::int32_t integer_scales[kPairsPerBlock];  // two of 16 bits each
  std::int32_t integer_sums[kPairsPerBlock];
  round_to_16_bits(_mm256_mul_ps(scales, _mm256_set1_ps(scale_factor)), integer_scales);
  round_to_16_bits(_mm256_mul_ps(scaled_sums, _mm256_set1_ps(sum_factor)), integer_sums);
  for (std::ptrdiff_t pair = 0; pair < num_pairs; ++pair) {
    const std::ptrdiff_t at = 2 * pair * kTileRows;
    __builtin_memcpy(out.integer_scales + at, integer_scales + pair, sizeof(integer_scales[0]));
    __builtin_memcpy(out.integer_sums + at, integer_sums + pair, sizeof(integer_sums[0]));
  }
}

}  // namespace

void quantize_paired_row(const float* x, int dim, const PairedRow& out) {
  constexpr std::ptrdiff_t kBlockCodes = std::ptrdiff_t{kScaleBlock} * kTileRows;
  constexpr std::ptrdiff_t kBlockNumbers = std::ptrdiff_t{kGroupsPerBlock} * kTileRows;
  PairedRow at = out;
  std::ptrdiff_t k = 0;
  for (; k + kScaleBlock <= dim; k += kScaleBlock) {
    quantize_block(x + k, kPairsPerBlock, at);
    at.codes += kBlockCodes;
    at.integer_scales += kBlockNumbers;
    at.integer_sums += kBlockNumbers;
    at.zero_terms += kBlockNumbers;
    at.units += kTileRows;
  }
  if (k < dim) {
    float values[kScaleBlock] = {};
    __builtin_memcpy(values, x + k, static_cast<std::size_t>(dim - k) * sizeof(float));
    quantize_block(values, (dim - k + kPair - 1) / kPair, at);
  }
}

}  // namespace headrace::avx512vnni
