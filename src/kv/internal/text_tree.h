// What text the blocks hold: a tree whose nodes are blocks of tokens after their parent's text. A
// node says which block of each group holds it (block 0: none). Equal nodes are found by hash and
// told apart by parent, salt and tokens, so equal hashes of other text are a miss.
//
// A node lives as long as it has a block, a child or a table whose text ends in it: a child is
// never without the chain that names it. One thread; every call is O(1), but for the compared
// tokens.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kv/block_hash.h"

namespace headrace {

class TextTree {
 public:
  static constexpr int kRoot = -1;  // the empty text
  static constexpr int kNone = -2;

  TextTree(int tokens_per_block, int num_groups, BlockHasher hasher);

  // The node of `tokens` (one block) after `parent`, or kNone.
  int find(int parent, std::span<const TokenId> tokens, std::uint64_t salt) const;
  // The same node, made if it is not there. Without a block and a reference it has to be given one
  // at once.
  int find_or_add(int parent, std::span<const TokenId> tokens, std::uint64_t salt);

  BlockId block(int node, int group) const;
  void set_block(int node, int group, BlockId block);  // counts as a reference
  void clear_block(int node, int group);

  // kRoot needs none and is taken.
  void add_reference(int node);
  void release(int node);

  int num_nodes() const { return static_cast<int>(nodes_.size() - free_.size()); }
  // Every node can be found; its references are its children, its blocks and its places in
  // `held_by_tables`.
  void check(std::span<const int> held_by_tables) const;

 private:
  struct Node {
    int parent = kRoot;
    int references = 0;  // children, blocks, tables; 0: not in use
    int next = kNone;    // of the same hash
    std::uint64_t salt = 0;
    BlockHash hash;
  };
  struct KeyOf {
    std::size_t operator()(const BlockHash& hash) const {
      return static_cast<std::size_t>(hash.low);
    }
  };

  BlockHash hash_of(int parent, std::span<const TokenId> tokens, std::uint64_t salt) const;
  int find_hashed(const BlockHash& hash,
                  int parent,
                  std::span<const TokenId> tokens,
                  std::uint64_t salt) const;
  std::span<const TokenId> tokens_of(int node) const;
  void unlink(int node);
  Node& at(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Node& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  std::size_t block_idx(int node, int group) const {
    return static_cast<std::size_t>(node) * static_cast<std::size_t>(num_groups_) +
           static_cast<std::size_t>(group);
  }

  int tokens_per_block_;
  int num_groups_;
  BlockHasher hasher_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;  // [node, tokens_per_block]
  std::vector<BlockId> blocks_;  // [node, group]
  std::vector<int> free_;
  std::unordered_map<BlockHash, int, KeyOf> first_;  // of each hash
};

}  // namespace headrace
