// The naive form over the flash form's tiles. Included by a tier's row_kernels.cc after
// attention-inl.h; everything is in that file's anonymous namespace.
#pragma once

#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/naive_kernels.h"

namespace headrace {
namespace {

template <typename T>
void widen_block(const AttentionTile& tile, std::int32_t block, float* keys, float* values) {
  const auto* const from = reinterpret_cast<const T*>(tile.kv + block * tile.block_stride);
  const std::ptrdiff_t half = offset(tile.head_dim, kBlockTokens);
  for (std::ptrdiff_t i = 0; i < half; i += 16) {
    store16(keys + i, load16(from + i));
    store16(values + i, load16(from + half + i));
  }
}

inline void naive_widen(const AttentionTile& tile, std::int32_t block, float* keys, float* values) {
  if (tile.type == KvType::kF16) {
    widen_block<std::uint16_t>(tile, block, keys, values);
  } else {
    widen_block<float>(tile, block, keys, values);
  }
}

// More scores than this do not stay in a cache until the softmax reads them.
inline constexpr std::ptrdiff_t kFarScores = std::ptrdiff_t{1} << 20;

inline void copy_step_far(const float* from, float* to) {
  HR_UNROLL for (int b = 0; b < kStepBlocks; ++b) {
    store_far16(to + offset(b, 16), load16(from + offset(b, 16)));
  }
}

inline void copy_step(const float* from, float* to) {
  HR_UNROLL for (int b = 0; b < kStepBlocks; ++b) {
    store16(to + offset(b, 16), load16(from + offset(b, 16)));
  }
}

inline void naive_scores(const AttentionTile& tile,
                         const float* keys,
                         int num_tokens,
                         float* scores,
                         std::ptrdiff_t stride,
                         float* memory) {
  const Scratch scratch = scratch_of(tile, memory);
  scale_queries(tile, scratch.q);
  const bool far = stride * stride > kFarScores;
  for (int token = 0; token < num_tokens; token += kAttentionStep) {
    StepBlocks<float> in{Step{token, 0, kAttentionStep}, tile.head_dim};
    for (int b = 0; b < kStepBlocks; ++b) {
      in.keys[b] = keys + offset(token + b * kBlockTokens, tile.head_dim);
    }
    score_rows<kScoreRows>(in, scratch, 0, tile.num_rows());
    for (int row = 0; row < tile.num_rows(); ++row) {
      const float* const from = scratch.scores + offset(row, kAttentionStep);
      float* const to = scores + row * stride + token;
      far ? copy_step_far(from, to) : copy_step(from, to);
    }
  }
  finish_far_stores();
}

inline void naive_softmax(const AttentionTile& tile,
                          int num_tokens,
                          float* scores,
                          std::ptrdiff_t stride) {
  constexpr float kMasked = -__builtin_inff();
  for (int row = 0; row < tile.num_rows(); ++row, scores += stride) {
    const int num_seen = tile.first_position + row + 1;
    Vec16 best = set16(kNoScore);
    for (int i = 0; i < num_tokens; i += 16) {
      best = max16(best, keep_range(load16(scores + i), 0, num_seen - i, kMasked));
    }
    const Vec16 shift = set16(max_lanes(best));
    Vec16 sums = set16(0);
    for (int i = 0; i < num_tokens; i += 16) {
      const Vec16 weight =
          exp2_16(sub(keep_range(load16(scores + i), 0, num_seen - i, kMasked), shift));
      store16(scores + i, weight);
      sums = add(sums, weight);
    }
    const Vec16 factor = set16(1.0F / sum_lanes(sums));
    for (int i = 0; i < num_tokens; i += 16) {
      store16(scores + i, mul(load16(scores + i), factor));
    }
  }
}

inline void naive_values(const AttentionTile& tile,
                         const float* values,
                         int num_tokens,
                         const float* scores,
                         std::ptrdiff_t stride,
                         float* memory) {
  const Scratch scratch = scratch_of(tile, memory);
  const State total = state_at(scratch.states[0], tile.num_rows());
  const State part = state_at(scratch.states[1], tile.num_rows());
  const std::ptrdiff_t size = offset(tile.num_rows(), tile.head_dim);
  for (std::ptrdiff_t i = 0; i < size; i += 16) {
    store16(total.values + i, set16(0));
  }
  for (int token = 0; token < num_tokens; token += kAttentionStep) {
    const bool first = token % kPartitionTokens == 0;
    StepBlocks<float> in{Step{token, 0, kAttentionStep}, tile.head_dim};
    for (int b = 0; b < kStepBlocks; ++b) {
      in.values[b] = values + offset(token + b * kBlockTokens, tile.head_dim);
    }
    for (int row = 0; row < tile.num_rows(); ++row) {
      scratch.decay[row] = first ? 0.0F : 1.0F;
      const float* const from = scores + row * stride + token;
      copy_step(from, scratch.scores + offset(row, kAttentionStep));
      for (int i = 0; i < kAttentionStep; i += 16) {
        __builtin_prefetch(from + kAttentionStep + i);
      }
    }
    for (std::ptrdiff_t i = 0; first && i < size; i += 16) {
      store16(part.values + i, set16(0));
    }
    value_rows<kValueRows>(in, scratch, part, 0, tile.num_rows());
    const bool last = token % kPartitionTokens == kPartitionTokens - kAttentionStep ||
                      token + kAttentionStep >= num_tokens;
    for (std::ptrdiff_t i = 0; last && i < size; i += 16) {
      store16(total.values + i, add(load16(total.values + i), load16(part.values + i)));
    }
  }
  for (int row = 0; row < tile.num_rows(); ++row) {
    for (int d = 0; d < tile.head_dim; d += 16) {
      store16(tile.out + row * tile.row_stride + d,
              load16(total.values + offset(row, tile.head_dim) + d));
    }
  }
}

}  // namespace
}  // namespace headrace
