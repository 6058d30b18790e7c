#include "bench/attention_traffic.h"

#include <algorithm>

#include "bench/cache_model.h"
#include "kernels/cpu/row_kernels.h"

namespace headrace {
namespace {

std::size_t times(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

int padded(int num_tokens) {
  return (num_tokens + kAttentionStep - 1) / kAttentionStep * kAttentionStep;
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

// What both forms read and write, and where it lies. The KV cache: [block][KV head][keys, values].
struct Memory {
  explicit Memory(const AttentionShape& shape)
      : row_bytes(times(shape.num_heads, shape.head_dim) * sizeof(float)),
        head_bytes(times(shape.head_dim, sizeof(float))),
        kv_head_bytes(2 * times(kBlockTokens, shape.head_dim) *
                      static_cast<std::size_t>(shape.value_bytes)),
        kv_block_bytes(kv_head_bytes * static_cast<std::size_t>(shape.num_kv_heads)),
        q(arrays.add(times(shape.num_tokens, 1) * row_bytes)),
        out(arrays.add(times(shape.num_tokens, 1) * row_bytes)),
        kv(arrays.add(times(padded(shape.num_tokens) / kBlockTokens, 1) * kv_block_bytes)) {}

  std::size_t q_at(int row, std::size_t part) const { return q + times(row, 1) * row_bytes + part; }
  std::size_t out_at(int row, std::size_t part) const {
    return out + times(row, 1) * row_bytes + part;
  }
  std::size_t kv_at(int block, int kv_head) const {
    return kv + times(block, 1) * kv_block_bytes + times(kv_head, 1) * kv_head_bytes;
  }

  Arrays arrays;
  std::size_t row_bytes, head_bytes, kv_head_bytes, kv_block_bytes;
  std::size_t q, out, kv;
};

// Tiles of query rows, the longest first; of each, its KV heads; of each, the steps that it sees.
class FlashReplay {
 public:
  FlashReplay(const AttentionShape& shape, std::size_t cache_bytes)
      : shape_(shape),
        memory_(shape),
        group_(shape.num_heads / shape.num_kv_heads),
        tile_queries_(std::max(1, kAttentionTileRows / group_)),
        scratch_bytes_(attention_scratch_floats(tile_queries_ * group_, shape.head_dim) *
                       sizeof(float)),
        scratch_(memory_.arrays.add(scratch_bytes_)),
        model_(cache_bytes, memory_.arrays.bytes()) {}

  std::uint64_t run() {
    const int num_tiles = (shape_.num_tokens + tile_queries_ - 1) / tile_queries_;
    for (int tile = num_tiles - 1; tile >= 0; --tile) {
      const int first = tile * tile_queries_;
      for (int kv_head = 0; kv_head < shape_.num_kv_heads; ++kv_head) {
        run_tile(first, std::min(shape_.num_tokens, first + tile_queries_), kv_head);
      }
    }
    model_.flush();
    return model_.bytes_moved();
  }

 private:
  void run_tile(int first, int end, int kv_head) {
    const std::size_t part_bytes = times(group_, 1) * memory_.head_bytes;
    const std::size_t part = times(kv_head, 1) * part_bytes;
    for (int query = first; query < end; ++query) {
      model_.read(memory_.q_at(query, part), part_bytes);
    }
    for (int token = 0; token < end; token += kAttentionStep) {
      const int last = std::min(end, token + kAttentionStep);
      for (int block = token / kBlockTokens; block * kBlockTokens < last; ++block) {
        model_.read(memory_.kv_at(block, kv_head), memory_.kv_head_bytes);
      }
      model_.write(scratch_, scratch_bytes_);
    }
    for (int query = first; query < end; ++query) {
      model_.write(memory_.out_at(query, part), part_bytes);
    }
  }

  const AttentionShape& shape_;
  Memory memory_;
  int group_;
  int tile_queries_;
  std::size_t scratch_bytes_;
  std::size_t scratch_;
  CacheModel model_;
};

// Head by head: keys and values as floats, then scores, softmax and values, each a pass over all
// tiles of rows.
class NaiveReplay {
 public:
  NaiveReplay(const AttentionShape& shape, NaiveScope scope, std::size_t cache_bytes)
      : shape_(shape),
        scope_(scope),
        n_(padded(shape.num_tokens)),
        memory_(shape),
        keys_(memory_.arrays.add(times(n_, 1) * memory_.head_bytes)),
        values_(memory_.arrays.add(times(n_, 1) * memory_.head_bytes)),
        scores_(memory_.arrays.add(times(n_, n_) * sizeof(float))),
        scratch_bytes_(attention_scratch_floats(kAttentionTileRows, shape.head_dim) *
                       sizeof(float)),
        scratch_(memory_.arrays.add(scratch_bytes_)),
        model_(cache_bytes, memory_.arrays.bytes()) {}

  std::uint64_t run() {
    const int group = shape_.num_heads / shape_.num_kv_heads;
    for (int head = 0; head < shape_.num_heads; ++head) {
      if (head % group == 0) {
        widen(head / group);
      }
      const std::size_t part = times(head, 1) * memory_.head_bytes;
      for_tiles([&](const Tile& tile) { score(tile, part); });
      for_tiles([&](const Tile& tile) { soften(tile); });
      for_tiles([&](const Tile& tile) { sum_values(tile, part); });
    }
    model_.flush();
    return model_.bytes_moved();
  }

 private:
  struct Tile {
    int first, end;  // rows
    int num_tokens;
  };

  template <typename Body>
  void for_tiles(Body&& body) {
    for (int first = 0; first < shape_.num_tokens; first += kAttentionTileRows) {
      const int end = std::min(shape_.num_tokens, first + kAttentionTileRows);
      body(Tile{first, end, scope_ == NaiveScope::kAllPairs ? n_ : padded(end)});
    }
  }

  std::size_t score_at(int row, int token) const {
    return scores_ + (times(row, n_) + times(token, 1)) * sizeof(float);
  }

  void widen(int kv_head) {
    const std::size_t bytes = kBlockTokens * memory_.head_bytes;
    for (int block = 0; block * kBlockTokens < shape_.num_tokens; ++block) {
      model_.read(memory_.kv_at(block, kv_head), memory_.kv_head_bytes);
      model_.write(keys_ + times(block, 1) * bytes, bytes);
      model_.write(values_ + times(block, 1) * bytes, bytes);
    }
  }

  void score(const Tile& tile, std::size_t part) {
    for (int row = tile.first; row < tile.end; ++row) {
      model_.read(memory_.q_at(row, part), memory_.head_bytes);
    }
    for (int token = 0; token < tile.num_tokens; token += kAttentionStep) {
      model_.read(keys_ + times(token, 1) * memory_.head_bytes,
                  kAttentionStep * memory_.head_bytes);
      model_.write(scratch_, scratch_bytes_);
      for (int row = tile.first; row < tile.end; ++row) {
        model_.write(score_at(row, token), kAttentionStep * sizeof(float));
      }
    }
  }

  // Over a row for its largest score, for the weights, and for their division by the sum.
  void soften(const Tile& tile) {
    const std::size_t bytes = times(tile.num_tokens, sizeof(float));
    for (int row = tile.first; row < tile.end; ++row) {
      model_.read(score_at(row, 0), bytes);
      for (int pass = 0; pass < 2; ++pass) {
        model_.read(score_at(row, 0), bytes);
        model_.write(score_at(row, 0), bytes);
      }
    }
  }

  void sum_values(const Tile& tile, std::size_t part) {
    for (int token = 0; token < tile.num_tokens; token += kAttentionStep) {
      model_.read(values_ + times(token, 1) * memory_.head_bytes,
                  kAttentionStep * memory_.head_bytes);
      model_.write(scratch_, scratch_bytes_);
      for (int row = tile.first; row < tile.end; ++row) {
        model_.read(score_at(row, token), kAttentionStep * sizeof(float));
      }
    }
    for (int row = tile.first; row < tile.end; ++row) {
      model_.write(memory_.out_at(row, part), memory_.head_bytes);
    }
  }

  const AttentionShape& shape_;
  NaiveScope scope_;
  int n_;
  Memory memory_;
  std::size_t keys_, values_, scores_, scratch_bytes_, scratch_;
  CacheModel model_;
};

}  // namespace

std::uint64_t flash_traffic(const AttentionShape& shape, std::size_t cache_bytes) {
  return FlashReplay(shape, cache_bytes).run();
}

std::uint64_t naive_traffic(const AttentionShape& shape,
                            NaiveScope scope,
                            std::size_t cache_bytes) {
  return NaiveReplay(shape, scope, cache_bytes).run();
}

}  // namespace headrace
