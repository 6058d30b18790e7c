#include "bench/attention_traffic.h"

#include <algorithm>

#include "bench/cache_model.h"
#include "kernels/cpu/row_kernels.h"

namespace headrace {
namespace {

std::size_t times(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

// Arrays one after the other, each from a page of its own.
class Arrays {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t begin = end_;
    end_ += (bytes + CacheModel::kPage - 1) / CacheModel::kPage * CacheModel::kPage;
    return begin;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

int padded(int num_tokens) {
  return (num_tokens + kAttentionStep - 1) / kAttentionStep * kAttentionStep;
}

// Blocks of the cache as they lie in one layer's pool: [block][KV head][keys, values].
struct Cache {
  std::size_t base = 0;
  std::size_t head_bytes = 0;
  std::size_t block_bytes = 0;
  std::size_t at(int block, int kv_head) const {
    return base + static_cast<std::size_t>(block) * block_bytes +
           static_cast<std::size_t>(kv_head) * head_bytes;
  }
};

Cache add_cache(const AttentionShape& shape, Arrays& arrays) {
  Cache cache;
  cache.head_bytes =
      2 * times(kBlockTokens, shape.head_dim) * static_cast<std::size_t>(shape.value_bytes);
  cache.block_bytes = cache.head_bytes * static_cast<std::size_t>(shape.num_kv_heads);
  cache.base = arrays.add(cache.block_bytes * times(padded(shape.num_tokens), 1) / kBlockTokens);
  return cache;
}

}  // namespace

std::uint64_t flash_traffic(const AttentionShape& shape, std::size_t cache_bytes) {
  const int group = shape.num_heads / shape.num_kv_heads;
  const int tile_queries = std::max(1, kAttentionTileRows / group);
  const std::size_t row_bytes = times(shape.num_heads, shape.head_dim) * sizeof(float);
  const std::size_t part_bytes =
      times(group, shape.head_dim) * sizeof(float);  // of a row, one KV head
  const std::size_t scratch_bytes =
      attention_scratch_floats(tile_queries * group, shape.head_dim) * sizeof(float);
  Arrays arrays;
  const std::size_t q = arrays.add(times(shape.num_tokens, 1) * row_bytes);
  const std::size_t out = arrays.add(times(shape.num_tokens, 1) * row_bytes);
  const std::size_t scratch = arrays.add(scratch_bytes);
  const Cache kv = add_cache(shape, arrays);
  CacheModel model(cache_bytes, arrays.bytes());
  const int num_tiles = (shape.num_tokens + tile_queries - 1) / tile_queries;
  for (int tile = num_tiles - 1; tile >= 0; --tile) {  // the longest first
    const int first = tile * tile_queries;
    const int end = std::min(shape.num_tokens, first + tile_queries);
    for (int kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head) {
      const std::size_t part = static_cast<std::size_t>(kv_head) * part_bytes;
      for (int query = first; query < end; ++query) {
        model.read(q + times(query, 1) * row_bytes + part, part_bytes);
      }
      for (int token = 0; token < end; token += kAttentionStep) {
        const int last = std::min(end, token + kAttentionStep);
        for (int block = token / kBlockTokens; block * kBlockTokens < last; ++block) {
          model.read(kv.at(block, kv_head), kv.head_bytes);
        }
        model.write(scratch, scratch_bytes);
      }
      for (int query = first; query < end; ++query) {
        model.write(out + times(query, 1) * row_bytes + part, part_bytes);
      }
    }
  }
  model.flush();
  return model.bytes_moved();
}

std::uint64_t naive_traffic(const AttentionShape& shape,
                            NaiveScope scope,
                            std::size_t cache_bytes) {
  const int n = padded(shape.num_tokens);
  const int group = shape.num_heads / shape.num_kv_heads;
  const std::size_t row_bytes = times(shape.num_heads, shape.head_dim) * sizeof(float);
  const std::size_t head_bytes = times(shape.head_dim, sizeof(float));
  const std::size_t scratch_bytes =
      attention_scratch_floats(kAttentionTileRows, shape.head_dim) * sizeof(float);
  Arrays arrays;
  const std::size_t q = arrays.add(times(shape.num_tokens, 1) * row_bytes);
  const std::size_t out = arrays.add(times(shape.num_tokens, 1) * row_bytes);
  const std::size_t keys = arrays.add(times(n, 1) * head_bytes);
  const std::size_t values = arrays.add(times(n, 1) * head_bytes);
  const std::size_t scores = arrays.add(times(n, n) * sizeof(float));
  const std::size_t scratch = arrays.add(scratch_bytes);
  const Cache kv = add_cache(shape, arrays);
  CacheModel model(cache_bytes, arrays.bytes());
  const auto for_tiles = [&](auto&& body) {
    for (int first = 0; first < shape.num_tokens; first += kAttentionTileRows) {
      const int end = std::min(shape.num_tokens, first + kAttentionTileRows);
      body(first, end, scope == NaiveScope::kAllPairs ? n : padded(end));
    }
  };
  const auto score_at = [&](int row, int token) {
    return scores + (times(row, n) + times(token, 1)) * sizeof(float);
  };
  for (int head = 0; head < shape.num_heads; ++head) {
    for (int block = 0; head % group == 0 && block * kBlockTokens < shape.num_tokens; ++block) {
      model.read(kv.at(block, head / group), kv.head_bytes);
      model.write(keys + times(block, kBlockTokens) * head_bytes, kBlockTokens * head_bytes);
      model.write(values + times(block, kBlockTokens) * head_bytes, kBlockTokens * head_bytes);
    }
    const std::size_t part = static_cast<std::size_t>(head) * head_bytes;
    for_tiles([&](int first, int end, int num_tokens) {
      for (int row = first; row < end; ++row) {
        model.read(q + times(row, 1) * row_bytes + part, head_bytes);
      }
      for (int token = 0; token < num_tokens; token += kAttentionStep) {
        model.read(keys + times(token, 1) * head_bytes, kAttentionStep * head_bytes);
        model.write(scratch, scratch_bytes);
        for (int row = first; row < end; ++row) {
          model.write(score_at(row, token), kAttentionStep * sizeof(float));
        }
      }
    });
    for_tiles([&](int first, int end, int num_tokens) {
      for (int row = first; row < end; ++row) {
        model.read(score_at(row, 0), times(num_tokens, sizeof(float)));  // largest
        model.read(score_at(row, 0), times(num_tokens, sizeof(float)));  // weights
        model.write(score_at(row, 0), times(num_tokens, sizeof(float)));
        model.read(score_at(row, 0), times(num_tokens, sizeof(float)));  // over their sum
        model.write(score_at(row, 0), times(num_tokens, sizeof(float)));
      }
    });
    for_tiles([&](int first, int end, int num_tokens) {
      for (int token = 0; token < num_tokens; token += kAttentionStep) {
        model.read(values + times(token, 1) * head_bytes, kAttentionStep * head_bytes);
        model.write(scratch, scratch_bytes);
        for (int row = first; row < end; ++row) {
          model.read(score_at(row, token), kAttentionStep * sizeof(float));
        }
      }
      for (int row = first; row < end; ++row) {
        model.write(out + times(row, 1) * row_bytes + part, head_bytes);
      }
    });
  }
  model.flush();
  return model.bytes_moved();
}

}  // namespace headrace
