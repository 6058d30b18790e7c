// What the CPU tiers compute besides matrix products: attention over paged KV, RMSNorm, and
// rotation with the append to the cache. One table of functions per tier; cpu_backend.cc and
// attention_plan.cc call them, from any worker thread.
//
// KV layout, of one block of 16 tokens and one KV head: K as [D][16], so that 16 scores are one
// vector, then V as [16][D]. A block of a layer is its heads one after the other.
//
// Flash attention (Dao et al. 2022, 2023; Milakov and Gimelshein 2018). The context is cut into
// partitions of 256 tokens and steps of 64 at absolute positions. A partition's state (max, sum,
// weighted values) is computed from its tokens alone and folded into the row's total in the order
// of positions, whoever computed it: so a row's bits depend on its own query and the cached keys
// and values only. What a row may not see adds exactly nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace headrace {

inline constexpr int kPartitionTokens = 256;
inline constexpr int kAttentionStep = 64;
inline constexpr int kAttentionTileRows =
    48;  // query heads of a group x query tokens; more only where a group is larger

// Rows of one sequence and one KV head: num_queries tokens at consecutive positions x the group's
// query heads.
struct AttentionTile {
  const float* q = nullptr;     // first token's first head of the group
  float* out = nullptr;         // likewise
  std::int64_t row_stride = 0;  // floats from one token to the next, of q and out
  int num_queries = 0;
  int group = 1;     // query heads of a KV head
  int head_dim = 0;  // a multiple of 16
  int first_position = 0;
  int window = 0;  // 0: all that is before
  float scale = 1;
  const std::int32_t* blocks = nullptr;  // block ids by position / 16
  const std::byte* kv = nullptr;         // this head's part of block 0
  std::int64_t block_stride = 0;
  KvType type = KvType::kF16;

  int num_rows() const { return num_queries * group; }
};

// Floats of a worker's scratch and of one partition's state.
constexpr std::size_t attention_state_floats(int num_rows, int head_dim) {
  return (static_cast<std::size_t>(num_rows) * (static_cast<std::size_t>(head_dim) + 2) + 15) / 16 *
         16;
}
constexpr std::size_t attention_scratch_floats(int num_rows, int head_dim) {
  const auto rows = static_cast<std::size_t>(num_rows);
  const auto dim = static_cast<std::size_t>(head_dim);
  return rows * (dim + kAttentionStep + 16 + 16) + 2 * attention_state_floats(num_rows, head_dim) +
         std::size_t{2} * kAttentionStep * dim;
}

struct RowKernels {
  // The states of partitions [begin, end) to `states`, one after the other.
  void (*attend_partitions)(
      const AttentionTile& tile, int begin, int end, float* states, float* scratch);
  // Folds num_states states into the first and writes the tile's output.
  void (*finish)(const AttentionTile& tile, float* states, int num_states);
  // Both at once, keeping only two states.
  void (*attend)(const AttentionTile& tile, int begin, int end, float* scratch);

  // Rows [begin, end) of Backend::rope_append.
  void (*rope_append)(const RopeAppendArgs& args, int begin, int end);
  // out = y / rms(y) * weight, or added to out. `num_rows` rows of dim values.
  void (*rms_norm)(
      const float* y, const float* weight, float eps, int num_rows, int dim, float* out);
  void (*rms_norm_add)(
      const float* y, const float* weight, float eps, int num_rows, int dim, float* out);
};

namespace scalar {
const RowKernels& row_kernels();
}
namespace avx2 {
const RowKernels& row_kernels();
}
namespace avx512vnni {
const RowKernels& row_kernels();
}

}  // namespace headrace
