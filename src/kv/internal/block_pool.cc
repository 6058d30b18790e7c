#include "kv/internal/block_pool.h"

#include "base/check.h"

namespace headrace {

BlockPool::BlockPool(int num_blocks) {
  HR_CHECK(num_blocks >= 1);
  blocks_.resize(static_cast<std::size_t>(num_blocks) + 1);
  free_.reserve(static_cast<std::size_t>(num_blocks));
  for (int id = num_blocks; id >= 1; --id) {
    free_.push_back(BlockId{id});
  }
}

BlockPool::Block& BlockPool::at(BlockId block) {
  HR_DCHECK(block.value >= 1 && block.value <= num_blocks());
  return blocks_[static_cast<std::size_t>(block.value)];
}

const BlockPool::Block& BlockPool::at(BlockId block) const {
  HR_DCHECK(block.value >= 1 && block.value <= num_blocks());
  return blocks_[static_cast<std::size_t>(block.value)];
}

void BlockPool::append_cached(int idx) {
  Block& head = blocks_[0];
  Block& block = blocks_[static_cast<std::size_t>(idx)];
  block.older = head.older;
  block.younger = 0;
  blocks_[static_cast<std::size_t>(head.older)].younger = idx;
  head.older = idx;
  ++num_cached_;
}

void BlockPool::unlink_cached(int idx) {
  Block& block = blocks_[static_cast<std::size_t>(idx)];
  blocks_[static_cast<std::size_t>(block.older)].younger = block.younger;
  blocks_[static_cast<std::size_t>(block.younger)].older = block.older;
  block.older = 0;
  block.younger = 0;
  --num_cached_;
}

BlockId BlockPool::take() {
  HR_CHECK(!free_.empty());
  const BlockId block = free_.back();
  free_.pop_back();
  at(block).references = 1;
  return block;
}

BlockPool::Evicted BlockPool::evict_oldest() {
  HR_CHECK(num_cached_ > 0);
  const BlockId block{blocks_[0].younger};
  const Evicted evicted{block, at(block).node, at(block).group};
  clear_node(block);
  return evicted;
}

void BlockPool::add_reference(BlockId block) {
  Block& b = at(block);
  if (b.references == 0) {
    HR_CHECK(b.node != kNoNode);  // a free block is only ever taken
    unlink_cached(block.value);
  }
  ++b.references;
}

void BlockPool::release(BlockId block) {
  Block& b = at(block);
  HR_CHECK(b.references > 0);
  if (--b.references > 0) {
    return;
  }
  if (b.node != kNoNode) {
    append_cached(block.value);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::set_node(BlockId block, int node, int group) {
  Block& b = at(block);
  HR_CHECK(b.references > 0 && b.node == kNoNode);
  b.node = node;
  b.group = group;
}

void BlockPool::clear_node(BlockId block) {
  Block& b = at(block);
  HR_CHECK(b.node != kNoNode);
  b.node = kNoNode;
  if (b.references == 0) {
    unlink_cached(block.value);
    free_.push_back(block);
  }
}

void BlockPool::check() const {
  int num_cached = 0;
  int num_free = 0;
  for (int id = 1; id <= num_blocks(); ++id) {
    const Block& b = at(BlockId{id});
    HR_CHECK(b.references >= 0);
    num_cached += b.references == 0 && b.node != kNoNode ? 1 : 0;
    num_free += b.references == 0 && b.node == kNoNode ? 1 : 0;
  }
  HR_CHECK(num_free == this->num_free());
  HR_CHECK(num_cached == num_cached_);
  for (const BlockId block : free_) {
    HR_CHECK(at(block).references == 0 && at(block).node == kNoNode);
  }
  int num_listed = 0;
  for (int idx = blocks_[0].younger; idx != 0;
       idx = blocks_[static_cast<std::size_t>(idx)].younger) {
    HR_CHECK(++num_listed <= num_cached_);
    HR_CHECK(at(BlockId{idx}).references == 0 && at(BlockId{idx}).node != kNoNode);
  }
  HR_CHECK(num_listed == num_cached_);
}

}  // namespace headrace
