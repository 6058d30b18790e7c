// Sixteen floats at once, in plain C++: the reference tier. The other tiers define the same names
// in the same way, in their own anonymous namespace, and the `-inl.h` files beside use only these;
// so an algorithm stands once. Nothing here may be seen outside one tier's .cc files. Products and
// sums are rounded each (no fused multiply-add here).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {
namespace {

// Tiles of the attention kernels that fit the registers: rows x blocks of keys, rows x vectors of
// values.
inline constexpr int kScoreRows = 2;
inline constexpr int kScoreBlocks = 2;
inline constexpr int kValueRows = 2;
inline constexpr int kValueVecs = 2;

struct Vec16 {
  float v[16];
};

template <typename Fn>
inline Vec16 each_lane(Fn fn) {
  Vec16 out;
  for (int i = 0; i < 16; ++i) {
    out.v[i] = fn(i);
  }
  return out;
}

inline Vec16 set16(float x) {
  return each_lane([&](int) { return x; });
}
inline Vec16 load16(const float* p) {
  return each_lane([&](int i) { return p[i]; });
}
inline Vec16 load16(const std::uint16_t* half) {
  return each_lane([&](int i) { return f16_to_f32(half[i]); });
}
// The first n values; zeros behind them.
inline Vec16 load_first(const float* p, int n) {
  return each_lane([&](int i) { return i < n ? p[i] : 0.0F; });
}
inline void store16(float* p, const Vec16& a) {
  for (int i = 0; i < 16; ++i) {
    p[i] = a.v[i];
  }
}
// Past the caches, to a place of whole vectors; others may read it after finish_far_stores().
inline void store_far16(float* p, const Vec16& a) { store16(p, a); }
inline void finish_far_stores() {}
inline void store16(std::uint16_t* half, const Vec16& a) {
  for (int i = 0; i < 16; ++i) {
    half[i] = f32_to_f16(a.v[i]);
  }
}
inline void store_first(float* p, const Vec16& a, int n) {
  for (int i = 0; i < n; ++i) {
    p[i] = a.v[i];
  }
}
inline Vec16 add(const Vec16& a, const Vec16& b) {
  return each_lane([&](int i) { return a.v[i] + b.v[i]; });
}
inline Vec16 sub(const Vec16& a, const Vec16& b) {
  return each_lane([&](int i) { return a.v[i] - b.v[i]; });
}
inline Vec16 mul(const Vec16& a, const Vec16& b) {
  return each_lane([&](int i) { return a.v[i] * b.v[i]; });
}
// a * b + c
inline Vec16 mul_add(const Vec16& a, const Vec16& b, const Vec16& c) {
  return each_lane([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
// The second operand where one is NaN, as the instructions do.
inline Vec16 max16(const Vec16& a, const Vec16& b) {
  return each_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Vec16 min16(const Vec16& a, const Vec16& b) {
  return each_lane([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
// The nearest integer, ties to even, for |a| < 2^22.
inline Vec16 round16(const Vec16& a) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23
  return each_lane([&](int i) { return (a.v[i] + kMagic) - kMagic; });
}
// 2^n for integral n in [-127, 127]; n = -127 gives 0.
inline Vec16 pow2(const Vec16& n) {
  return each_lane([&](int i) {
    const auto bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(n.v[i]) + 127) << 23;
    return __builtin_bit_cast(float, bits);
  });
}
// a in the lanes [begin, end), `other` elsewhere.
inline Vec16 keep_range(const Vec16& a, int begin, int end, float other) {
  return each_lane([&](int i) { return i >= begin && i < end ? a.v[i] : other; });
}
// Folded in halves: lanes i and i + 8, then + 4, + 2, + 1.
inline float sum_lanes(Vec16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.v[i] += a.v[i + half];
    }
  }
  return a.v[0];
}
inline float max_lanes(const Vec16& a) {
  float out = a.v[0];
  for (int i = 1; i < 16; ++i) {
    out = a.v[i] > out ? a.v[i] : out;
  }
  return out;
}
inline float sqrt1(float x) { return __builtin_sqrtf(x); }

}  // namespace
}  // namespace headrace
