// Which KV blocks are free, which table holds which, and which are kept because their text may come
// again. Ids, token spans and counts only: no sequence, no request, and no bytes (those are in
// kv/kv_storage.h).
//
// One pool of equal blocks serves all groups of layers (full attention, window of w): each table
// has one list of blocks per group, indexed by position / 16. A window group gives back what has
// slid out (its entries become block 0, the dummy, which is never handed out). A prefix hit must
// hold in every group: a full group needs every block of it, a window group those that the next
// token still sees.
//
// A cached block is found by a chained hash of its text and salt, and is used only if the tokens
// are equal too, so a collision is a miss. Full blocks of committed tokens alone are published.
//
// One thread (the engine's). check() states the invariants: free + cached + used == num_blocks; a
// block's references == the tables that hold it; every cached block is findable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kv/block_hash.h"

namespace headrace {

using TableId = StrongId<struct TableIdTag, std::int32_t>;

struct KvGroupSpec {
  int window = 0;  // 0: full attention
};

struct KvOccupancy {
  int num_blocks = 0;  // without the dummy
  int free = 0;        // hold nothing
  int cached = 0;      // hold published text that no table uses; can be evicted
  int used = 0;        // at least one table holds them
};

struct KvStats {
  std::int64_t prefix_queries = 0;  // tokens asked for by tables that then got room
  std::int64_t prefix_hits = 0;     // tokens of these that were found
  std::int64_t evictions = 0;
};

class KvManager {
 public:
  // num_blocks without the dummy: ids are 1 ... num_blocks. Only tests give another hasher.
  KvManager(std::vector<KvGroupSpec> groups,
            int num_blocks,
            int tokens_per_block,
            bool prefix_cache,
            BlockHasher hasher = hash_block);
  ~KvManager();

  // A new empty table. Equal salts share cached text.
  TableId open(std::uint64_t salt);
  // The longest cached prefix of `tokens`, in whole blocks and always leaving at least one token to
  // compute, becomes the table's start. Returns its number of tokens. The table is empty before.
  int match_prefix(TableId table, std::span<const TokenId> tokens);
  // Makes room for positions [0, num_tokens) as seen from num_computed on: all blocks or none
  // (false). Evicts the least recently used cached blocks when free ones run out.
  bool reserve(TableId table, int num_computed, int num_tokens);
  // How many blocks that reserve() would take.
  int blocks_needed(TableId table, int num_computed, int num_tokens) const;
  // tokens[0, n) are computed and final: publishes their full blocks; window groups give back what
  // slid out. Each call costs only what is new in it.
  void commit(TableId table, std::span<const TokenId> tokens);
  // Gives back the blocks beyond position num_tokens (rejected drafts). What was committed stays.
  void truncate(TableId table, int num_tokens);
  // Drops every reference; published blocks stay cached.
  void close(TableId table);
  // Forgets all cached text (blocks held by tables stay theirs).
  void clear_cache();

  std::span<const BlockId> blocks(TableId table, int group_idx) const;
  // Blocks that the table holds in all groups, without dummies.
  int held_blocks(TableId table) const;
  int num_groups() const;
  int num_blocks() const;
  int tokens_per_block() const;
  KvOccupancy occupancy() const;
  KvStats stats() const;
  // Blocks for one sequence of this many tokens, if it ran alone in one go with chunks of
  // max_chunk.
  int max_blocks_for(int num_tokens, int max_chunk) const;
  void check() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
