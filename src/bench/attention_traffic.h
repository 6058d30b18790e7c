// Bytes that one layer's attention over a whole prompt moves between a core's second-level cache
// and what is behind it, in the flash and in the naive form: their loops, as src/kernels runs them,
// replayed through bench/cache_model.h on one core. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/naive_attention.h"

namespace headrace {

struct AttentionShape {
  int num_tokens = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int value_bytes = 2;  // of the cache's values
};

std::uint64_t flash_traffic(const AttentionShape& shape, std::size_t cache_bytes);
std::uint64_t naive_traffic(const AttentionShape& shape, NaiveScope scope, std::size_t cache_bytes);

}  // namespace headrace
