#include "kv/kv_storage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace headrace {

KvLayout plan_kv_layout(const KvShape& shape, KvType type, const Backend& backend) {
  std::map<int, std::vector<int>> layers_of_window;
  for (std::size_t i = 0; i < shape.layer_windows.size(); ++i) {
    layers_of_window[shape.layer_windows[i]].push_back(static_cast<int>(i));
  }
  std::size_t group_size = shape.layer_windows.size();
  for (const auto& [window, layers] : layers_of_window) {
    group_size = std::min(group_size, layers.size());
  }
  KvLayout layout;
  layout.group_of_layer.resize(shape.layer_windows.size());
  layout.place_in_group.resize(shape.layer_windows.size());
  for (const auto& [window, layers] : layers_of_window) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i % group_size == 0) {
        layout.groups.push_back({window});
        layout.group_layers.emplace_back();
      }
      const auto layer = static_cast<std::size_t>(layers[i]);
      layout.group_of_layer[layer] = static_cast<int>(layout.groups.size()) - 1;
      layout.place_in_group[layer] = static_cast<int>(i % group_size);
      layout.group_layers.back().push_back(layers[i]);
    }
  }
  layout.layer_bytes = backend.kv_block_bytes(type, shape.num_kv_heads, shape.head_dim);
  layout.block_bytes = layout.layer_bytes * group_size;
  return layout;
}

Result<std::unique_ptr<KvStorage>> KvStorage::create(const KvShape& shape,
                                                     KvType type,
                                                     int num_blocks,
                                                     Backend& backend) {
  KvLayout layout = plan_kv_layout(shape, type, backend);
  HR_ASSIGN_OR_RETURN(Buffer pool,
                      backend.alloc(layout.block_bytes * (static_cast<std::size_t>(num_blocks) + 1),
                                    MemoryPart::kKv));
  return std::unique_ptr<KvStorage>(new KvStorage(shape, type, std::move(layout), std::move(pool)));
}

KvStorage::KvStorage(KvShape shape, KvType type, KvLayout layout, Buffer pool)
    : shape_(std::move(shape)), type_(type), layout_(std::move(layout)), pool_(std::move(pool)) {}

KvLayer KvStorage::layer(int layer_idx) const {
  HR_DCHECK(layer_idx >= 0 && layer_idx < static_cast<int>(layout_.place_in_group.size()));
  const auto place =
      static_cast<std::size_t>(layout_.place_in_group[static_cast<std::size_t>(layer_idx)]);
  return {.base = pool_.as<std::byte>() + place * layout_.layer_bytes,
          .block_stride = static_cast<std::int64_t>(layout_.block_bytes),
          .type = type_,
          .num_kv_heads = shape_.num_kv_heads,
          .head_dim = shape_.head_dim};
}

}  // namespace headrace
