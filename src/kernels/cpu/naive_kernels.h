// One tier's parts of NaiveAttention: a tile of rows of one query head (tile.group is 1) against
// the tokens [0, num_tokens), a multiple of kAttentionStep. Rows of scores are `stride` floats
// apart, a multiple of 16, and begin at whole vectors. `scratch` has attention_scratch_floats().
// Pure on their arguments, called by any worker.
#pragma once

#include <cstddef>

#include "kernels/cpu/row_kernels.h"

namespace headrace {

struct NaiveKernels {
  // A block of the tile's cache as float32: keys [D][16], values [16][D].
  void (*widen)(const AttentionTile& tile,
                std::int32_t block,
                float* keys,
                float* values) = nullptr;
  // In base 2; keys are blocks one after the other.
  void (*scores)(const AttentionTile& tile,
                 const float* keys,
                 int num_tokens,
                 float* scores,
                 std::ptrdiff_t stride,
                 float* scratch) = nullptr;
  void (*softmax)(const AttentionTile& tile,
                  int num_tokens,
                  float* scores,
                  std::ptrdiff_t stride) = nullptr;
  // Writes tile.out; summed over partitions of kPartitionTokens, then over these.
  void (*values)(const AttentionTile& tile,
                 const float* values,
                 int num_tokens,
                 const float* scores,
                 std::ptrdiff_t stride,
                 float* scratch) = nullptr;
};

namespace scalar {
const NaiveKernels& naive_kernels();
}
namespace avx2 {
const NaiveKernels& naive_kernels();
}
namespace avx512vnni {
const NaiveKernels& naive_kernels();
}

}  // namespace headrace
