#include "kv/kv_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/internal/block_pool.h"
#include "kv/internal/text_tree.h"

namespace headrace {
namespace {

int div_up(int a, int b) { return (a + b - 1) / b; }

struct Table {
  bool open = false;
  std::uint64_t salt = 0;
  std::vector<std::vector<BlockId>> blocks;  // [group][position / tokens_per_block]
  std::vector<int> first_held;               // [group]: everything before is the dummy
  int num_held = 0;
  int num_full = 0;            // blocks of committed text, published where nobody else had
  int text = TextTree::kRoot;  // the node of that text
  std::int64_t unreported_queries = 0;
  std::int64_t unreported_hits = 0;
};

}  // namespace

class KvManager::Impl {
 public:
  Impl(std::vector<KvGroupSpec> groups,
       int num_blocks,
       int tokens_per_block,
       bool prefix_cache,
       BlockHasher hasher)
      : groups_(std::move(groups)),
        tokens_per_block_(tokens_per_block),
        prefix_cache_(prefix_cache),
        pool_(num_blocks),
        tree_(tokens_per_block, static_cast<int>(groups_.size()), std::move(hasher)) {
    HR_CHECK(!groups_.empty() && tokens_per_block >= 1);
  }

  TableId open(std::uint64_t salt) {
    if (free_tables_.empty()) {
      free_tables_.push_back(TableId{static_cast<std::int32_t>(tables_.size())});
      tables_.emplace_back();
    }
    const TableId id = free_tables_.back();
    free_tables_.pop_back();
    Table& table = tables_[static_cast<std::size_t>(id.value)];
    table.open = true;
    table.salt = salt;
    table.blocks.resize(groups_.size());
    table.first_held.assign(groups_.size(), 0);
    return id;
  }

  int match_prefix(TableId id, std::span<const TokenId> tokens) {
    Table& table = at(id);
    HR_CHECK(table.num_held == 0 && table.num_full == 0);
    table.unreported_queries = static_cast<std::int64_t>(tokens.size());
    if (!prefix_cache_ || tokens.empty()) {
      return 0;
    }
    const int most = (static_cast<int>(tokens.size()) - 1) / tokens_per_block_;
    std::vector<int> nodes;
    int text = TextTree::kRoot;
    while (static_cast<int>(nodes.size()) < most) {
      text = tree_.find(text, block_tokens(tokens, static_cast<int>(nodes.size())), table.salt);
      if (text == TextTree::kNone) {
        break;
      }
      nodes.push_back(text);
    }
    nodes.resize(static_cast<std::size_t>(longest_held(nodes)));
    adopt(table, nodes);
    const int num_tokens = static_cast<int>(nodes.size()) * tokens_per_block_;
    table.unreported_hits = num_tokens;
    return num_tokens;
  }

  int blocks_needed(TableId id, int num_computed, int num_tokens) const {
    const Table& table = at(id);
    int needed = 0;
    for (int group = 0; group < num_groups(); ++group) {
      const int end = div_up(num_tokens, tokens_per_block_);
      needed += std::max(0, end - first_new(table, group, num_computed));
    }
    return needed;
  }

  bool reserve(TableId id, int num_computed, int num_tokens) {
    const int needed = blocks_needed(id, num_computed, num_tokens);
    if (needed > pool_.num_free() + pool_.num_cached()) {
      return false;
    }
    Table& table = at(id);
    for (int group = 0; group < num_groups(); ++group) {
      std::vector<BlockId>& blocks = table.blocks[static_cast<std::size_t>(group)];
      const int end = div_up(num_tokens, tokens_per_block_);
      const int first = first_new(table, group, num_computed);
      if (end <= static_cast<int>(blocks.size())) {
        continue;
      }
      if (first > static_cast<int>(blocks.size())) {
        blocks.resize(static_cast<std::size_t>(std::min(first, end)));  // never seen: dummies
        table.first_held[static_cast<std::size_t>(group)] = static_cast<int>(blocks.size());
      }
      while (static_cast<int>(blocks.size()) < end) {
        blocks.push_back(take_block());
        ++table.num_held;
      }
    }
    stats_.prefix_queries += std::exchange(table.unreported_queries, 0);
    stats_.prefix_hits += std::exchange(table.unreported_hits, 0);
    return true;
  }

  void commit(TableId id, std::span<const TokenId> tokens) {
    Table& table = at(id);
    const int num_tokens = static_cast<int>(tokens.size());
    const int num_full = num_tokens / tokens_per_block_;
    if (prefix_cache_) {
      for (int idx = table.num_full; idx < num_full; ++idx) {
        publish(table, idx, block_tokens(tokens, idx));
      }
    }
    table.num_full = std::max(table.num_full, num_full);
    for (int group = 0; group < num_groups(); ++group) {
      slide(table, group, first_seen(group, num_tokens));
    }
  }

  void truncate(TableId id, int num_tokens) {
    Table& table = at(id);
    HR_CHECK(num_tokens >= table.num_full * tokens_per_block_);
    const auto end = static_cast<std::size_t>(div_up(num_tokens, tokens_per_block_));
    for (std::vector<BlockId>& blocks : table.blocks) {
      while (blocks.size() > end) {
        release_last(table, blocks);
      }
    }
  }

  void close(TableId id) {
    Table& table = at(id);
    // The last blocks first, so that a text is evicted from its end.
    for (std::vector<BlockId>& blocks : table.blocks) {
      while (!blocks.empty()) {
        release_last(table, blocks);
      }
    }
    HR_CHECK(table.num_held == 0);
    tree_.release(table.text);
    std::vector<std::vector<BlockId>> lists = std::move(table.blocks);  // keeps their memory
    table = Table{};
    table.blocks = std::move(lists);
    free_tables_.push_back(id);
  }

  void clear_cache() {
    for (int idx = 1; idx <= pool_.num_blocks(); ++idx) {
      const BlockId block{idx};
      if (pool_.node(block) != BlockPool::kNoNode) {
        tree_.clear_block(pool_.node(block), pool_.group(block));
        pool_.clear_node(block);
      }
    }
  }

  std::span<const BlockId> blocks(TableId id, int group) const {
    return at(id).blocks[static_cast<std::size_t>(group)];
  }

  int max_blocks_for(int num_tokens, int max_chunk) const {
    int sum = 0;
    for (const KvGroupSpec& group : groups_) {
      const int all = div_up(num_tokens, tokens_per_block_);
      // A stretch of n positions touches at most (n + T - 2) / T + 1 blocks, wherever it lies.
      const int stretch = group.window - 1 + std::min(max_chunk, num_tokens);
      const int seen = (stretch + tokens_per_block_ - 2) / tokens_per_block_ + 1;
      sum += group.window == 0 ? all : std::min(all, seen);
    }
    return sum;
  }

  void check() const {
    pool_.check();
    std::vector<int> holders(static_cast<std::size_t>(pool_.num_blocks()) + 1, 0);
    std::vector<int> texts;
    int num_open = 0;
    for (const Table& table : tables_) {
      if (table.open) {
        ++num_open;
        texts.push_back(table.text);
        check_table(table, holders);
      }
    }
    HR_CHECK(num_open + static_cast<int>(free_tables_.size()) == static_cast<int>(tables_.size()));
    tree_.check(texts);
    for (int idx = 1; idx <= pool_.num_blocks(); ++idx) {
      const BlockId block{idx};
      HR_CHECK(pool_.references(block) == holders[static_cast<std::size_t>(idx)]);
      const int node = pool_.node(block);
      HR_CHECK(node == BlockPool::kNoNode || tree_.block(node, pool_.group(block)) == block);
    }
    HR_CHECK(pool_.num_free() + pool_.num_cached() + pool_.num_used() == pool_.num_blocks());
  }

  int num_groups() const { return static_cast<int>(groups_.size()); }
  int tokens_per_block() const { return tokens_per_block_; }
  int held_blocks(TableId id) const { return at(id).num_held; }
  const BlockPool& pool() const { return pool_; }
  const KvStats& stats() const { return stats_; }

 private:
  Table& at(TableId id) {
    Table& table = tables_[static_cast<std::size_t>(id.value)];
    HR_CHECK(table.open);
    return table;
  }
  const Table& at(TableId id) const {
    const Table& table = tables_[static_cast<std::size_t>(id.value)];
    HR_CHECK(table.open);
    return table;
  }

  std::span<const TokenId> block_tokens(std::span<const TokenId> tokens, int idx) const {
    const auto size = static_cast<std::size_t>(tokens_per_block_);
    return tokens.subspan(static_cast<std::size_t>(idx) * size, size);
  }

  // The first block that a query at this position still sees.
  int first_seen(int group, int position) const {
    const int window = groups_[static_cast<std::size_t>(group)].window;
    return window == 0 ? 0 : std::max(0, position - window + 1) / tokens_per_block_;
  }

  int first_new(const Table& table, int group, int num_computed) const {
    return std::max(static_cast<int>(table.blocks[static_cast<std::size_t>(group)].size()),
                    first_seen(group, num_computed));
  }

  // How many of these nodes, from the start, can begin a table: a full group needs the blocks of
  // all of them, a window group those that the next position sees.
  int longest_held(std::span<const int> nodes) const {
    int longest = static_cast<int>(nodes.size());
    std::vector<std::vector<int>>
        runs;  // [group][idx]: blocks that are there, without a gap, up to this one
    for (int group = 0; group < num_groups(); ++group) {
      std::vector<int>& run = runs.emplace_back();
      int length = 0;
      for (const int node : nodes) {
        length = tree_.block(node, group).value != 0 ? length + 1 : 0;
        run.push_back(length);
      }
    }
    const auto holds = [&](int num_nodes, int group) {
      const int first = first_seen(group, num_nodes * tokens_per_block_);
      return runs[static_cast<std::size_t>(group)][static_cast<std::size_t>(num_nodes) - 1] >=
             num_nodes - first;
    };
    for (; longest > 0; --longest) {
      bool all = true;
      for (int group = 0; group < num_groups() && all; ++group) {
        all = holds(longest, group);
      }
      if (all) {
        break;
      }
    }
    return longest;
  }

  void adopt(Table& table, std::span<const int> nodes) {
    const int num_nodes = static_cast<int>(nodes.size());
    for (int group = 0; group < num_groups(); ++group) {
      const int first = std::min(num_nodes, first_seen(group, num_nodes * tokens_per_block_));
      std::vector<BlockId>& blocks = table.blocks[static_cast<std::size_t>(group)];
      blocks.assign(static_cast<std::size_t>(first), BlockId{});
      table.first_held[static_cast<std::size_t>(group)] = first;
      for (int idx = first; idx < num_nodes; ++idx) {
        blocks.push_back(tree_.block(nodes[static_cast<std::size_t>(idx)], group));
        pool_.add_reference(blocks.back());
        ++table.num_held;
      }
    }
    table.num_full = num_nodes;
    if (num_nodes > 0) {
      table.text = nodes.back();
      tree_.add_reference(table.text);
    }
  }

  BlockId take_block() {
    if (pool_.num_free() == 0) {
      const BlockPool::Evicted evicted = pool_.evict_oldest();
      tree_.clear_block(evicted.node, evicted.group);
      ++stats_.evictions;
    }
    return pool_.take();
  }

  void publish(Table& table, int idx, std::span<const TokenId> tokens) {
    const int node = tree_.find_or_add(table.text, tokens, table.salt);
    tree_.add_reference(node);
    tree_.release(std::exchange(table.text, node));
    for (int group = 0; group < num_groups(); ++group) {
      const BlockId block =
          table.blocks[static_cast<std::size_t>(group)][static_cast<std::size_t>(idx)];
      // Where another table published the same text first, this block stays private.
      if (block.value != 0 && tree_.block(node, group).value == 0) {
        tree_.set_block(node, group, block);
        pool_.set_node(block, node, group);
      }
    }
  }

  void slide(Table& table, int group, int first) {
    std::vector<BlockId>& blocks = table.blocks[static_cast<std::size_t>(group)];
    int& held = table.first_held[static_cast<std::size_t>(group)];
    const int end = std::min(first, static_cast<int>(blocks.size()));
    for (int idx = end - 1; idx >= held; --idx) {
      pool_.release(std::exchange(blocks[static_cast<std::size_t>(idx)], BlockId{}));
      --table.num_held;
    }
    held = std::max(held, end);
  }

  void release_last(Table& table, std::vector<BlockId>& blocks) {
    if (blocks.back().value != 0) {
      pool_.release(blocks.back());
      --table.num_held;
    }
    blocks.pop_back();
  }

  void check_table(const Table& table, std::vector<int>& holders) const {
    int num_held = 0;
    for (int group = 0; group < num_groups(); ++group) {
      const std::vector<BlockId>& blocks = table.blocks[static_cast<std::size_t>(group)];
      for (int idx = 0; idx < static_cast<int>(blocks.size()); ++idx) {
        const BlockId block = blocks[static_cast<std::size_t>(idx)];
        HR_CHECK((block.value == 0) == (idx < table.first_held[static_cast<std::size_t>(group)]));
        if (block.value != 0) {
          ++holders[static_cast<std::size_t>(block.value)];
          ++num_held;
        }
      }
    }
    HR_CHECK(num_held == table.num_held);
  }

  std::vector<KvGroupSpec> groups_;
  int tokens_per_block_;
  bool prefix_cache_;
  BlockPool pool_;
  TextTree tree_;
  std::vector<Table> tables_;
  std::vector<TableId> free_tables_;
  KvStats stats_;
};

KvManager::KvManager(std::vector<KvGroupSpec> groups,
                     int num_blocks,
                     int tokens_per_block,
                     bool prefix_cache,
                     BlockHasher hasher)
    : impl_(std::make_unique<Impl>(
          std::move(groups), num_blocks, tokens_per_block, prefix_cache, std::move(hasher))) {}
KvManager::~KvManager() = default;

TableId KvManager::open(std::uint64_t salt) { return impl_->open(salt); }
int KvManager::match_prefix(TableId table, std::span<const TokenId> tokens) {
  return impl_->match_prefix(table, tokens);
}
bool KvManager::reserve(TableId table, int num_computed, int num_tokens) {
  return impl_->reserve(table, num_computed, num_tokens);
}
int KvManager::blocks_needed(TableId table, int num_computed, int num_tokens) const {
  return impl_->blocks_needed(table, num_computed, num_tokens);
}
void KvManager::commit(TableId table, std::span<const TokenId> tokens) {
  impl_->commit(table, tokens);
}
void KvManager::truncate(TableId table, int num_tokens) { impl_->truncate(table, num_tokens); }
void KvManager::close(TableId table) { impl_->close(table); }
void KvManager::clear_cache() { impl_->clear_cache(); }
std::span<const BlockId> KvManager::blocks(TableId table, int group_idx) const {
  return impl_->blocks(table, group_idx);
}
int KvManager::held_blocks(TableId table) const { return impl_->held_blocks(table); }
int KvManager::num_groups() const { return impl_->num_groups(); }
int KvManager::num_blocks() const { return impl_->pool().num_blocks(); }
int KvManager::tokens_per_block() const { return impl_->tokens_per_block(); }
KvOccupancy KvManager::occupancy() const {
  const BlockPool& pool = impl_->pool();
  return {pool.num_blocks(), pool.num_free(), pool.num_cached(), pool.num_used()};
}
KvStats KvManager::stats() const { return impl_->stats(); }
int KvManager::max_blocks_for(int num_tokens, int max_chunk) const {
  return impl_->max_blocks_for(num_tokens, max_chunk);
}
void KvManager::check() const { impl_->check(); }

}  // namespace headrace
