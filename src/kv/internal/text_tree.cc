#include "kv/internal/text_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace {

TextTree::TextTree(int tokens_per_block, int num_groups, BlockHasher hasher)
    : tokens_per_block_(tokens_per_block), num_groups_(num_groups), hasher_(std::move(hasher)) {}

BlockHash TextTree::hash_of(int parent, std::span<const TokenId> tokens, std::uint64_t salt) const {
  HR_DCHECK(static_cast<int>(tokens.size()) == tokens_per_block_);
  return hasher_(parent == kRoot ? BlockHash{} : at(parent).hash, tokens, salt);
}

std::span<const TokenId> TextTree::tokens_of(int node) const {
  const auto size = static_cast<std::size_t>(tokens_per_block_);
  return std::span(tokens_).subspan(static_cast<std::size_t>(node) * size, size);
}

int TextTree::find_hashed(const BlockHash& hash,
                          int parent,
                          std::span<const TokenId> tokens,
                          std::uint64_t salt) const {
  const auto found = first_.find(hash);
  int node = found == first_.end() ? kNone : found->second;
  while (node != kNone) {
    const Node& n = at(node);
    if (n.parent == parent && n.salt == salt && std::ranges::equal(tokens_of(node), tokens)) {
      return node;
    }
    node = n.next;
  }
  return kNone;
}

int TextTree::find(int parent, std::span<const TokenId> tokens, std::uint64_t salt) const {
  return find_hashed(hash_of(parent, tokens, salt), parent, tokens, salt);
}

int TextTree::find_or_add(int parent, std::span<const TokenId> tokens, std::uint64_t salt) {
  const BlockHash hash = hash_of(parent, tokens, salt);
  if (const int found = find_hashed(hash, parent, tokens, salt); found != kNone) {
    return found;
  }
  int node = 0;
  if (free_.empty()) {
    node = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
    tokens_.resize(tokens_.size() + static_cast<std::size_t>(tokens_per_block_));
    blocks_.resize(blocks_.size() + static_cast<std::size_t>(num_groups_));
  } else {
    node = free_.back();
    free_.pop_back();
  }
  std::ranges::copy(tokens,
                    tokens_.begin() + static_cast<std::ptrdiff_t>(node) * tokens_per_block_);
  const auto [first, added] = first_.try_emplace(hash, kNone);
  at(node) =
      Node{.parent = parent, .references = 0, .next = first->second, .salt = salt, .hash = hash};
  first->second = node;
  add_reference(parent);
  return node;
}

BlockId TextTree::block(int node, int group) const { return blocks_[block_idx(node, group)]; }

void TextTree::set_block(int node, int group, BlockId block) {
  BlockId& entry = blocks_[block_idx(node, group)];
  HR_CHECK(entry.value == 0 && block.value != 0);
  entry = block;
  add_reference(node);
}

void TextTree::clear_block(int node, int group) {
  BlockId& entry = blocks_[block_idx(node, group)];
  HR_CHECK(entry.value != 0);
  entry = BlockId{};
  release(node);
}

void TextTree::add_reference(int node) {
  if (node != kRoot) {
    ++at(node).references;
  }
}

void TextTree::release(int node) {
  while (node != kRoot) {
    HR_CHECK(at(node).references > 0);
    if (--at(node).references > 0) {
      return;
    }
    const int parent = at(node).parent;
    unlink(node);
    free_.push_back(node);
    node = parent;  // it had this child
  }
}

void TextTree::unlink(int node) {
  const auto found = first_.find(at(node).hash);
  HR_CHECK(found != first_.end());
  int* link = &found->second;
  while (*link != node) {
    HR_CHECK(*link != kNone);
    link = &at(*link).next;
  }
  *link = at(node).next;
  if (found->second == kNone) {
    first_.erase(found);
  }
}

void TextTree::check(std::span<const int> held_by_tables) const {
  std::vector<int> expected(nodes_.size(), 0);
  const auto count = [&](int node) {
    if (node != kRoot) {
      ++expected[static_cast<std::size_t>(node)];
    }
  };
  std::ranges::for_each(held_by_tables, count);
  int num_live = 0;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    if (at(node).references == 0) {
      continue;
    }
    ++num_live;
    count(at(node).parent);
    for (int group = 0; group < num_groups_; ++group) {
      expected[static_cast<std::size_t>(node)] += block(node, group).value != 0 ? 1 : 0;
    }
    HR_CHECK(find_hashed(at(node).hash, at(node).parent, tokens_of(node), at(node).salt) == node);
  }
  HR_CHECK(num_live == num_nodes());
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    HR_CHECK(at(node).references == expected[static_cast<std::size_t>(node)]);
  }
}

}  // namespace headrace
