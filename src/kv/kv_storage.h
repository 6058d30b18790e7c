// The bytes of the KV blocks. One pool serves all groups: a block is large enough for the layers of
// any one group, and block 0 is the dummy. Layers with the same window are cut into groups of equal
// size, so that one kind of block fits all (a model of 15 window layers and 3 full ones has six
// groups of three layers). Layout inside a layer's part belongs to the backend. Made once; the
// KvLayer views are valid as long as it lives.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kv/kv_manager.h"

namespace headrace {

// What a model's layers ask of the cache.
struct KvShape {
  int num_kv_heads = 0;
  int head_dim = 0;
  std::vector<int> layer_windows;  // per layer; 0: full attention
};

struct KvLayout {
  std::vector<KvGroupSpec> groups;
  std::vector<std::vector<int>> group_layers;  // model layers of each group
  std::vector<int> group_of_layer;
  std::vector<int> place_in_group;  // of each layer
  std::size_t layer_bytes = 0;      // of a block, one layer
  std::size_t block_bytes = 0;      // of a block, the largest group
};

KvLayout plan_kv_layout(const KvShape& shape, KvType type, const Backend& backend);

class KvStorage {
 public:
  // num_blocks without the dummy.
  static Result<std::unique_ptr<KvStorage>> create(const KvShape& shape,
                                                   KvType type,
                                                   int num_blocks,
                                                   Backend& backend);

  const KvLayout& layout() const { return layout_; }
  KvLayer layer(int layer_idx) const;

 private:
  KvStorage(KvShape shape, KvType type, KvLayout layout, Buffer pool);

  KvShape shape_;
  KvType type_;
  KvLayout layout_;
  Buffer pool_;
};

}  // namespace headrace
