// RMSNorm, rotation and the append to the cache over sixteen-lane vectors; see row_kernels.h.
// Included once by a tier's row_kernels.cc, after its vec16.h; everything is in that file's
// anonymous namespace. Sums run over two sets of sixteen lanes, then across.
#pragma once

#include "kernels/cpu/row_kernels.h"

namespace headrace {
namespace {

// 1 / sqrt(mean of squares + eps)
inline float inverse_rms(const float* x, int dim, float eps) {
  Vec16 even = set16(0);
  Vec16 odd = set16(0);
  int i = 0;
  for (; i + 32 <= dim; i += 32) {
    const Vec16 a = load16(x + i);
    const Vec16 b = load16(x + i + 16);
    even = mul_add(a, a, even);
    odd = mul_add(b, b, odd);
  }
  for (; i < dim; i += 16) {
    const Vec16 a = load_first(x + i, dim - i < 16 ? dim - i : 16);
    even = mul_add(a, a, even);
  }
  return 1.0F / sqrt1(sum_lanes(add(even, odd)) / static_cast<float>(dim) + eps);
}

template <bool Add>
void norm_row(const float* y, const float* weight, float eps, int dim, float* out) {
  const Vec16 factor = set16(inverse_rms(y, dim, eps));
  int i = 0;
  for (; i + 16 <= dim; i += 16) {
    const Vec16 x = mul(mul(load16(y + i), factor), load16(weight + i));
    store16(out + i, Add ? add(load16(out + i), x) : x);
  }
  if (i < dim) {
    const int rest = dim - i;
    const Vec16 x = mul(mul(load_first(y + i, rest), factor), load_first(weight + i, rest));
    store_first(out + i, Add ? add(load_first(out + i, rest), x) : x, rest);
  }
}

template <bool Add>
void norm_rows(const float* y, const float* weight, float eps, int num_rows, int dim, float* out) {
  for (int row = 0; row < num_rows; ++row) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(row) * dim;
    norm_row<Add>(y + first, weight, eps, dim, out + first);
  }
}

// Pairs (i, i + half), as products and sums rounded each.
inline void rotate_halves(float* x, const float* cosines, const float* sines, int half) {
  for (int i = 0; i < half; i += 16) {
    const int n = half - i < 16 ? half - i : 16;
    const Vec16 a = load_first(x + i, n);
    const Vec16 b = load_first(x + half + i, n);
    const Vec16 c = load_first(cosines + i, n);
    const Vec16 s = load_first(sines + i, n);
    store_first(x + i, sub(mul(a, c), mul(b, s)), n);
    store_first(x + half + i, add(mul(b, c), mul(a, s)), n);
  }
}

// Pairs (2i, 2i + 1).
inline void rotate_interleaved(float* x, const float* cosines, const float* sines, int half) {
  for (int i = 0; i < half; ++i, x += 2) {
    const float a = x[0];
    const float b = x[1];
    x[0] = a * cosines[i] - b * sines[i];
    x[1] = b * cosines[i] + a * sines[i];
  }
}

// The heads of one row: normalized where there is a weight, then rotated.
inline void turn_heads(
    const RopeAppendArgs& args, int row, const float* norm, int num_heads, float* heads) {
  const int half = args.rotary_dim / 2;
  const float* cosines = args.cos_sin + static_cast<std::ptrdiff_t>(row) * args.rotary_dim;
  for (int head = 0; head < num_heads; ++head) {
    float* x = heads + static_cast<std::ptrdiff_t>(head) * args.kv.head_dim;
    if (norm != nullptr) {
      norm_row<false>(x, norm, args.norm_eps, args.kv.head_dim, x);
    }
    if (args.style == RopeStyle::kHalves) {
      rotate_halves(x, cosines, cosines + half, half);
    } else {
      rotate_interleaved(x, cosines, cosines + half, half);
    }
  }
}

// What the cache keeps of sixteen values. A half has no room beyond 65504: larger ones stop there,
// so that a row stays finite; NaN stays NaN.
inline void narrow(const float* from, float* to) { store16(to, load16(from)); }
inline void narrow(const float* from, std::uint16_t* to) {
  constexpr float kMaxHalf = 65504.0F;
  store16(to, min16(set16(kMaxHalf), max16(set16(-kMaxHalf), load16(from))));
}

template <typename T>
void append_row(const RopeAppendArgs& args, const float* k, const float* v, std::int32_t slot) {
  const int dim = args.kv.head_dim;
  const std::int32_t offset = slot % kBlockTokens;
  auto* block = reinterpret_cast<T*>(args.kv.base + (slot / kBlockTokens) * args.kv.block_stride);
  for (int head = 0; head < args.kv.num_kv_heads; ++head) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(head) * dim;
    T* keys = block + 2 * first * kBlockTokens;
    T* values = keys + static_cast<std::ptrdiff_t>(dim) * kBlockTokens +
                static_cast<std::ptrdiff_t>(offset) * dim;
    for (int d = 0; d < dim; d += 16) {
      T lanes[16];
      narrow(k + first + d, lanes);
      for (int i = 0; i < 16; ++i) {
        keys[(d + i) * kBlockTokens + offset] = lanes[i];
      }
      narrow(v + first + d, values + d);
    }
  }
}

inline void rope_append_rows(const RopeAppendArgs& args, int begin, int end) {
  const std::ptrdiff_t q_dim = static_cast<std::ptrdiff_t>(args.num_heads) * args.kv.head_dim;
  const std::ptrdiff_t kv_dim =
      static_cast<std::ptrdiff_t>(args.kv.num_kv_heads) * args.kv.head_dim;
  for (int row = begin; row < end; ++row) {
    turn_heads(args, row, args.q_norm, args.num_heads, args.q + row * q_dim);
    turn_heads(args, row, args.k_norm, args.kv.num_kv_heads, args.k + row * kv_dim);
    if (args.kv.type == KvType::kF16) {
      append_row<std::uint16_t>(
          args, args.k + row * kv_dim, args.v + row * kv_dim, args.slots[row]);
    } else {
      append_row<float>(args, args.k + row * kv_dim, args.v + row * kv_dim, args.slots[row]);
    }
  }
}

}  // namespace
}  // namespace headrace
