// Sixteen floats as two AVX2 registers; names and meaning as in scalar/vec16.h, with fused
// multiply-add.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace headrace {
namespace {

// Of 16 registers: 12 accumulators, the rest for broadcasts; keys and values are memory operands or
// pass through one.
inline constexpr int kScoreRows = 3;
inline constexpr int kScoreBlocks = 2;
inline constexpr int kValueRows = 3;
inline constexpr int kValueVecs = 2;

struct Vec16 {
  __m256 lo, hi;
};

inline Vec16 set16(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Vec16 load16(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline Vec16 load16(const std::uint16_t* half) {
  const auto* p = reinterpret_cast<const __m128i*>(half);
  return {_mm256_cvtph_ps(_mm_loadu_si128(p)), _mm256_cvtph_ps(_mm_loadu_si128(p + 1))};
}
inline void store16(float* p, const Vec16& a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
// Past the caches, to a place of whole vectors; others may read it after finish_far_stores().
inline void store_far16(float* p, const Vec16& a) {
  _mm256_stream_ps(p, a.lo);
  _mm256_stream_ps(p + 8, a.hi);
}
inline void finish_far_stores() { _mm_sfence(); }
inline void store16(std::uint16_t* half, const Vec16& a) {
  auto* p = reinterpret_cast<__m128i*>(half);
  _mm_storeu_si128(p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  _mm_storeu_si128(p + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec16 load_first(const float* p, int n) {
  alignas(32) float all[16] = {};
  for (int i = 0; i < n && i < 16; ++i) {
    all[i] = p[i];
  }
  return load16(all);
}
inline void store_first(float* p, const Vec16& a, int n) {
  alignas(32) float all[16];
  store16(all, a);
  for (int i = 0; i < n && i < 16; ++i) {
    p[i] = all[i];
  }
}
inline Vec16 add(const Vec16& a, const Vec16& b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Vec16 sub(const Vec16& a, const Vec16& b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Vec16 mul(const Vec16& a, const Vec16& b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Vec16 mul_add(const Vec16& a, const Vec16& b, const Vec16& c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Vec16 max16(const Vec16& a, const Vec16& b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline Vec16 min16(const Vec16& a, const Vec16& b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline Vec16 round16(const Vec16& a) {
  return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline __m256 pow2_half(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
inline Vec16 pow2(const Vec16& n) { return {pow2_half(n.lo), pow2_half(n.hi)}; }
inline Vec16 keep_range(const Vec16& a, int begin, int end, float other) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i first = _mm256_set1_epi32(begin - 1);
  const __m256i last = _mm256_set1_epi32(end);
  const __m256i upper = _mm256_add_epi32(lanes, _mm256_set1_epi32(8));
  const __m256i keep_lo =
      _mm256_and_si256(_mm256_cmpgt_epi32(lanes, first), _mm256_cmpgt_epi32(last, lanes));
  const __m256i keep_hi =
      _mm256_and_si256(_mm256_cmpgt_epi32(upper, first), _mm256_cmpgt_epi32(last, upper));
  const __m256 rest = _mm256_set1_ps(other);
  return {_mm256_blendv_ps(rest, a.lo, _mm256_castsi256_ps(keep_lo)),
          _mm256_blendv_ps(rest, a.hi, _mm256_castsi256_ps(keep_hi))};
}
inline float sum_lanes(const Vec16& a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
inline float max_lanes(const Vec16& a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
inline float sqrt1(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

}  // namespace
}  // namespace headrace
