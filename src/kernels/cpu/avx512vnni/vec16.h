// Sixteen floats as one AVX-512 register; names and meaning as in scalar/vec16.h, with fused
// multiply-add.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace headrace {
namespace {

// Of 32 registers: 24 accumulators, four vectors of keys or values, a broadcast.
inline constexpr int kScoreRows = 6;
inline constexpr int kScoreBlocks = 4;
inline constexpr int kValueRows = 6;
inline constexpr int kValueVecs = 4;

using Vec16 = __m512;

inline Vec16 set16(float x) { return _mm512_set1_ps(x); }
inline Vec16 load16(const float* p) { return _mm512_loadu_ps(p); }
inline Vec16 load16(const std::uint16_t* half) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(half)));
}
inline void store16(float* p, Vec16 a) { _mm512_storeu_ps(p, a); }
// Past the caches, to a place of whole vectors; others may read it after finish_far_stores().
inline void store_far16(float* p, Vec16 a) { _mm512_stream_ps(p, a); }
inline void finish_far_stores() { _mm_sfence(); }
inline void store16(std::uint16_t* half, Vec16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(half),
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
// Lanes [0, n), n in [0, 16].
inline __mmask16 first_lanes(int n) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(n)) - 1U);
}
inline Vec16 load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
inline void store_first(float* p, Vec16 a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), a); }
inline Vec16 add(Vec16 a, Vec16 b) { return _mm512_add_ps(a, b); }
inline Vec16 sub(Vec16 a, Vec16 b) { return _mm512_sub_ps(a, b); }
inline Vec16 mul(Vec16 a, Vec16 b) { return _mm512_mul_ps(a, b); }
inline Vec16 mul_add(Vec16 a, Vec16 b, Vec16 c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec16 max16(Vec16 a, Vec16 b) { return _mm512_max_ps(a, b); }
inline Vec16 min16(Vec16 a, Vec16 b) { return _mm512_min_ps(a, b); }
inline Vec16 round16(Vec16 a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Vec16 pow2(Vec16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
}
inline Vec16 keep_range(Vec16 a, int begin, int end, float other) {
  const int from = begin < 0 ? 0 : (begin > 16 ? 16 : begin);
  const int to = end < 0 ? 0 : (end > 16 ? 16 : end);
  const auto keep = static_cast<__mmask16>(first_lanes(to) & ~first_lanes(from));
  return _mm512_mask_blend_ps(keep, _mm512_set1_ps(other), a);
}
inline float sum_lanes(Vec16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
inline float max_lanes(Vec16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
inline float sqrt1(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

}  // namespace
}  // namespace headrace
