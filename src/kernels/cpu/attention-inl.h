// Flash attention of one tile over sixteen-lane vectors; see row_kernels.h for the scheme. Included
// once by a tier's row_kernels.cc, after its vec16.h; everything is in that file's anonymous
// namespace.
//
// Order of arithmetic of a row, whatever the tile: a score is summed over D in order; the values of
// a step over its tokens in order; the weights lane by lane (token mod 16) over a partition, then
// across lanes.
#pragma once

#include "kernels/cpu/row_kernels.h"

#if defined(__clang__)
#define HR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HR_UNROLL _Pragma("GCC unroll 16")
#endif

namespace headrace {
namespace {

inline constexpr int kStepBlocks = kAttentionStep / kBlockTokens;
inline constexpr float kScoreLimit = 1e30F;   // scores stop here, so that none is infinite
inline constexpr float kNoScore = -1e31F;     // the maximum before any score
inline constexpr float kLog2e = 1.44269504F;  // scores are in base 2

// Values before element `count` of rows of `width`.
inline std::ptrdiff_t offset(int count, int width) {
  return static_cast<std::ptrdiff_t>(count) * width;
}

inline int least(int a, int b) { return a < b ? a : b; }
inline int most(int a, int b) { return a > b ? a : b; }

// 2^x for x <= 0; 0 below -126.5. A polynomial of degree 6 for the fraction, relative error 2e-9
// before rounding.
inline Vec16 exp2_16(const Vec16& x) {
  const Vec16 clamped = max16(set16(-127.0F), x);
  const Vec16 whole = round16(clamped);
  const Vec16 r = sub(clamped, whole);
  Vec16 p = set16(0x1.41fbbcp-13F);
  p = mul_add(p, r, set16(0x1.5f3e52p-10F));
  p = mul_add(p, r, set16(0x1.3b2d4cp-7F));
  p = mul_add(p, r, set16(0x1.c6aee8p-5F));
  p = mul_add(p, r, set16(0x1.ebfbdcp-3F));
  p = mul_add(p, r, set16(0x1.62e430p-1F));
  p = mul_add(p, r, set16(1.0F));
  return mul(p, pow2(whole));
}

inline float exp2_1(float x) {
  float lanes[16];
  store16(lanes, exp2_16(set16(x)));
  return lanes[0];
}

// [R] m, [R] l, [R, D] weighted values: of one partition, or of all so far.
struct State {
  float* max;
  float* sum;
  float* values;
};

inline State state_at(float* memory, int num_rows) {
  return {memory, memory + num_rows, memory + offset(num_rows, 2)};
}

struct Scratch {
  float* q;          // [R, D], times scale * log2(e)
  float* scores;     // [R, 64]; weights after the softmax
  float* lane_sums;  // [R, 16]
  float* decay;      // [R]
  float* states[2];
  float* kv;  // K [64 * D], V [64 * D] of a step in float32
};

inline Scratch scratch_of(const AttentionTile& tile, float* memory) {
  const auto rows = static_cast<std::ptrdiff_t>(tile.num_rows());
  const auto state_floats =
      static_cast<std::ptrdiff_t>(attention_state_floats(tile.num_rows(), tile.head_dim));
  Scratch out;
  out.q = memory;
  out.scores = out.q + rows * tile.head_dim;
  out.lane_sums = out.scores + rows * kAttentionStep;
  out.decay = out.lane_sums + rows * 16;
  out.states[0] = out.decay + rows * 16;
  out.states[1] = out.states[0] + state_floats;
  out.kv = out.states[1] + state_floats;
  return out;
}

// The tokens [begin, end) of a step, relative to its first, that at least one row sees; blocks
// likewise.
struct Step {
  int first_token;
  int begin, end;
  int first_block() const { return begin / kBlockTokens; }
  int block_end() const { return (end + kBlockTokens - 1) / kBlockTokens; }
};

inline int first_visible(const AttentionTile& tile, int query) {
  const int position = tile.first_position + query;
  return tile.window > 0 ? most(0, position - tile.window + 1) : 0;
}

inline Step step_at(const AttentionTile& tile, int first_token) {
  const int from = first_visible(tile, 0) - first_token;
  const int to = tile.first_position + tile.num_queries - first_token;
  return {first_token, most(0, from), least(kAttentionStep, to)};
}

// The blocks of a step, by their place in it; only those that some row sees are set.
template <typename T>
struct StepBlocks {
  Step step;
  int dim = 0;
  const T* keys[kStepBlocks] = {};
  const T* values[kStepBlocks] = {};
};

// scores = q . K for R rows and B blocks.
template <int R, int B, typename T>
void score_tile(const float* q, int dim, const T* const* keys, float* scores) {
  Vec16 sums[R][B];
  HR_UNROLL for (int r = 0; r < R; ++r) {
    HR_UNROLL for (int b = 0; b < B; ++b) { sums[r][b] = set16(0); }
  }
  for (int d = 0; d < dim; ++d) {
    Vec16 k[B];
    HR_UNROLL for (int b = 0; b < B; ++b) { k[b] = load16(keys[b] + offset(d, 16)); }
    HR_UNROLL for (int r = 0; r < R; ++r) {
      const Vec16 x = set16(q[offset(r, dim) + d]);
      HR_UNROLL for (int b = 0; b < B; ++b) { sums[r][b] = mul_add(x, k[b], sums[r][b]); }
    }
  }
  HR_UNROLL for (int r = 0; r < R; ++r) {
    HR_UNROLL for (int b = 0; b < B; ++b) {
      store16(scores + offset(r, kAttentionStep) + offset(b, 16), sums[r][b]);
    }
  }
}

// Rows [row, num_rows), R at a time, the rest by a smaller tile.
template <int R, typename T>
void score_rows(const StepBlocks<T>& in, const Scratch& scratch, int row, int num_rows) {
  for (; row + R <= num_rows; row += R) {
    const float* q = scratch.q + offset(row, in.dim);
    float* scores = scratch.scores + offset(row, kAttentionStep);
    int b = in.step.first_block();
    for (; b + kScoreBlocks <= in.step.block_end(); b += kScoreBlocks) {
      score_tile<R, kScoreBlocks>(q, in.dim, in.keys + b, scores + offset(b, 16));
    }
    for (; b < in.step.block_end(); ++b) {
      score_tile<R, 1>(q, in.dim, in.keys + b, scores + offset(b, 16));
    }
  }
  if constexpr (R > 1) {
    score_rows<R - 1>(in, scratch, row, num_rows);
  }
}

// values = values * decay + sum of weight * V over the step's tokens, for R rows and V vectors of D
// from d on.
template <int R, int V, typename T>
void value_tile(const StepBlocks<T>& in, const Scratch& scratch, int row, int d, float* values) {
  const int dim = in.dim;
  const float* weights = scratch.scores + offset(row, kAttentionStep);
  values += offset(row, dim) + d;
  Vec16 sums[R][V];
  HR_UNROLL for (int r = 0; r < R; ++r) {
    const Vec16 factor = set16(scratch.decay[row + r]);
    HR_UNROLL for (int v = 0; v < V; ++v) {
      sums[r][v] = mul(load16(values + offset(r, dim) + offset(v, 16)), factor);
    }
  }
  for (int token = in.step.begin; token < in.step.end; ++token) {
    const T* source = in.values[token / kBlockTokens] + offset(token % kBlockTokens, dim) + d;
    Vec16 x[V];
    HR_UNROLL for (int v = 0; v < V; ++v) { x[v] = load16(source + offset(v, 16)); }
    HR_UNROLL for (int r = 0; r < R; ++r) {
      const Vec16 weight = set16(weights[offset(r, kAttentionStep) + token]);
      HR_UNROLL for (int v = 0; v < V; ++v) { sums[r][v] = mul_add(weight, x[v], sums[r][v]); }
    }
  }
  HR_UNROLL for (int r = 0; r < R; ++r) {
    HR_UNROLL for (int v = 0; v < V; ++v) {
      store16(values + offset(r, dim) + offset(v, 16), sums[r][v]);
    }
  }
}

template <int R, typename T>
void value_rows(
    const StepBlocks<T>& in, const Scratch& scratch, const State& state, int row, int num_rows) {
  for (; row + R <= num_rows; row += R) {
    int d = 0;
    for (; d + kValueVecs * 16 <= in.dim; d += kValueVecs * 16) {
      value_tile<R, kValueVecs>(in, scratch, row, d, state.values);
    }
    for (; d < in.dim; d += 16) {
      value_tile<R, 1>(in, scratch, row, d, state.values);
    }
  }
  if constexpr (R > 1) {
    value_rows<R - 1>(in, scratch, state, row, num_rows);
  }
}

// Turns a row's scores into weights against its new maximum, and notes how much what came before
// decays. The row sees the step's tokens [row_begin, row_end).
inline void soften_row(const Step& step,
                       int row_begin,
                       int row_end,
                       int row,
                       const Scratch& scratch,
                       const State& state) {
  constexpr float kMasked = -__builtin_inff();
  float* scores = scratch.scores + offset(row, kAttentionStep);
  float* lane_sums = scratch.lane_sums + offset(row, 16);
  const bool all_seen =
      row_begin <= 0 && row_end >= kAttentionStep && step.begin == 0 && step.end == kAttentionStep;
  Vec16 s[kStepBlocks];
  HR_UNROLL for (int b = 0; b < kStepBlocks; ++b) {
    const Vec16 score =
        max16(set16(-kScoreLimit), min16(set16(kScoreLimit), load16(scores + offset(b, 16))));
    if (all_seen) {
      s[b] = score;
    } else if (b < step.first_block() || b >= step.block_end()) {
      s[b] = set16(kMasked);
    } else {
      s[b] = keep_range(score, row_begin - b * 16, row_end - b * 16, kMasked);
    }
  }
  const float old_max = state.max[row];
  Vec16 best = set16(old_max);
  HR_UNROLL for (int b = 0; b < kStepBlocks; ++b) { best = max16(best, s[b]); }
  const float new_max = max_lanes(best);
  const float decay = new_max == old_max ? 1.0F : exp2_1(old_max - new_max);
  state.max[row] = new_max;
  scratch.decay[row] = decay;
  Vec16 sums = mul(load16(lane_sums), set16(decay));
  const Vec16 shift = set16(new_max);
  HR_UNROLL for (int b = 0; b < kStepBlocks; ++b) {
    const Vec16 weight = exp2_16(sub(s[b], shift));
    store16(scores + offset(b, 16), weight);
    sums = add(sums, weight);
  }
  store16(lane_sums, sums);
}

template <typename T>
void attend_step(const AttentionTile& tile,
                 const StepBlocks<T>& in,
                 const Scratch& scratch,
                 const State& state) {
  const int num_rows = tile.num_rows();
  score_rows<kScoreRows>(in, scratch, 0, num_rows);
  for (int row = 0; row < num_rows; ++row) {
    const int query = row / tile.group;
    const int row_begin = first_visible(tile, query) - in.step.first_token;
    const int row_end = tile.first_position + query + 1 - in.step.first_token;
    soften_row(in.step, row_begin, row_end, row, scratch, state);
  }
  value_rows<kValueRows>(in, scratch, state, 0, num_rows);
}

// Reads the cache where it lies, or, for more rows than one register tile, turns a step of it into
// float32 once.
template <typename T>
void load_and_attend_step(const AttentionTile& tile,
                          const Step& step,
                          const Scratch& scratch,
                          const State& state) {
  const std::ptrdiff_t half = offset(tile.head_dim, kBlockTokens);
  StepBlocks<T> in{step, tile.head_dim};
  for (int b = step.first_block(); b < step.block_end(); ++b) {
    const std::int32_t block = tile.blocks[step.first_token / kBlockTokens + b];
    in.keys[b] = reinterpret_cast<const T*>(tile.kv + block * tile.block_stride);
    in.values[b] = in.keys[b] + half;
  }
  if (sizeof(T) == sizeof(float) || tile.num_rows() <= kScoreRows) {
    attend_step(tile, in, scratch, state);
    return;
  }
  StepBlocks<float> wide{step, tile.head_dim};
  for (int b = step.first_block(); b < step.block_end(); ++b) {
    float* block = scratch.kv + 2 * half * b;
    for (std::ptrdiff_t i = 0; i < 2 * half; i += 16) {
      store16(block + i, load16(in.keys[b] + i));
    }
    wide.keys[b] = block;
    wide.values[b] = block + half;
  }
  attend_step(tile, wide, scratch, state);
}

inline void attend_partition(const AttentionTile& tile,
                             int partition,
                             const Scratch& scratch,
                             const State& state) {
  const int num_rows = tile.num_rows();
  for (int row = 0; row < num_rows; ++row) {
    state.max[row] = kNoScore;
    store16(scratch.lane_sums + offset(row, 16), set16(0));
  }
  for (std::ptrdiff_t i = 0; i < offset(num_rows, tile.head_dim); i += 16) {
    store16(state.values + i, set16(0));
  }
  const int first_token = partition * kPartitionTokens;
  for (int token = first_token; token < first_token + kPartitionTokens; token += kAttentionStep) {
    const Step step = step_at(tile, token);
    if (step.begin >= step.end) {
      continue;
    }
    if (tile.type == KvType::kF16) {
      load_and_attend_step<std::uint16_t>(tile, step, scratch, state);
    } else {
      load_and_attend_step<float>(tile, step, scratch, state);
    }
  }
  for (int row = 0; row < num_rows; ++row) {
    state.sum[row] = sum_lanes(load16(scratch.lane_sums + offset(row, 16)));
  }
}

// Folds a later partition into the total. One without any score leaves the total as it is, bit for
// bit.
inline void fold(const AttentionTile& tile, const State& part, const State& total) {
  for (int row = 0; row < tile.num_rows(); ++row) {
    const float new_max = part.max[row] > total.max[row] ? part.max[row] : total.max[row];
    const float old_factor = exp2_1(total.max[row] - new_max);
    const float new_factor = exp2_1(part.max[row] - new_max);
    total.max[row] = new_max;
    total.sum[row] = total.sum[row] * old_factor + part.sum[row] * new_factor;
    const Vec16 a = set16(old_factor);
    const Vec16 b = set16(new_factor);
    const std::ptrdiff_t first = offset(row, tile.head_dim);
    for (std::ptrdiff_t i = first; i < first + tile.head_dim; i += 16) {
      store16(total.values + i,
              mul_add(load16(part.values + i), b, mul(load16(total.values + i), a)));
    }
  }
}

inline void write_out(const AttentionTile& tile, const State& total) {
  for (int row = 0; row < tile.num_rows(); ++row) {
    const float* values = total.values + offset(row, tile.head_dim);
    float* out =
        tile.out + (row / tile.group) * tile.row_stride + offset(row % tile.group, tile.head_dim);
    const Vec16 factor = set16(1.0F / total.sum[row]);
    for (int d = 0; d < tile.head_dim; d += 16) {
      store16(out + d, mul(load16(values + d), factor));
    }
  }
}

inline void scale_queries(const AttentionTile& tile, float* q) {
  const Vec16 factor = set16(tile.scale * kLog2e);
  for (int row = 0; row < tile.num_rows(); ++row) {
    const float* from =
        tile.q + (row / tile.group) * tile.row_stride + offset(row % tile.group, tile.head_dim);
    for (int d = 0; d < tile.head_dim; d += 16) {
      store16(q + offset(row, tile.head_dim) + d, mul(load16(from + d), factor));
    }
  }
}

inline void attend_partitions(
    const AttentionTile& tile, int begin, int end, float* states, float* memory) {
  const Scratch scratch = scratch_of(tile, memory);
  scale_queries(tile, scratch.q);
  for (int partition = begin; partition < end; ++partition) {
    attend_partition(tile, partition, scratch, state_at(states, tile.num_rows()));
    states += attention_state_floats(tile.num_rows(), tile.head_dim);
  }
}

inline void finish(const AttentionTile& tile, float* states, int num_states) {
  const State total = state_at(states, tile.num_rows());
  for (int i = 1; i < num_states; ++i) {
    states += attention_state_floats(tile.num_rows(), tile.head_dim);
    fold(tile, state_at(states, tile.num_rows()), total);
  }
  write_out(tile, total);
}

inline void attend(const AttentionTile& tile, int begin, int end, float* memory) {
  const Scratch scratch = scratch_of(tile, memory);
  const State total = state_at(scratch.states[0], tile.num_rows());
  const State part = state_at(scratch.states[1], tile.num_rows());
  scale_queries(tile, scratch.q);
  attend_partition(tile, begin, scratch, total);
  for (int partition = begin + 1; partition < end; ++partition) {
    attend_partition(tile, partition, scratch, part);
    fold(tile, part, total);
  }
  write_out(tile, total);
}

}  // namespace
}  // namespace headrace
