// The blocks themselves: which are free, used or cached, and who is evicted next. Knows nothing of
// text: a cached block carries the number of the text node that it belongs to, for whoever has to
// forget it when the block is evicted.
//
// A block is free (no references, no node), cached (no references, a node) or used (references).
// Ids are 1 ... num_blocks. One thread; every call is O(1).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace headrace {

class BlockPool {
 public:
  static constexpr int kNoNode = -1;

  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(blocks_.size()) - 1; }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_cached() const { return num_cached_; }
  int num_used() const { return num_blocks() - num_free() - num_cached(); }

  // A free block with one reference. One is free.
  BlockId take();
  // The cached block that was released longest ago becomes free; one is cached. Its node is
  // returned.
  struct Evicted {
    BlockId block;
    int node = kNoNode;
    int group = 0;
  };
  Evicted evict_oldest();

  void add_reference(BlockId block);
  // At zero references the block is cached if it has a node (as the youngest), else free.
  void release(BlockId block);
  // The block now holds a node's text in this group; it has references and no node.
  void set_node(BlockId block, int node, int group);
  // The block's text is forgotten: a cached block becomes free.
  void clear_node(BlockId block);

  int references(BlockId block) const { return at(block).references; }
  int node(BlockId block) const { return at(block).node; }
  int group(BlockId block) const { return at(block).group; }

  // The lists agree with the blocks' states.
  void check() const;

 private:
  struct Block {
    int references = 0;
    int node = kNoNode;
    int group = 0;
    int older = 0;  // neighbours in the list of cached blocks; 0 is the list's own end
    int younger = 0;
  };

  Block& at(BlockId block);
  const Block& at(BlockId block) const;
  void append_cached(int idx);
  void unlink_cached(int idx);

  std::vector<Block>
      blocks_;  // [0] is the list's head: younger = oldest cached, older = youngest cached
  std::vector<BlockId> free_;  // a stack
  int num_cached_ = 0;
};

}  // namespace headrace
