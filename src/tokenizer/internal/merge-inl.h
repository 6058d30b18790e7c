// The loop at the heart of byte pair encoding: of all adjacent pairs that may merge, the best
// ranked one does, the leftmost of equals, until none is left. O(n log n) with a heap; short words
// take a plain scan, which is faster there. Pure; the caller owns the scratch, so that a text of
// many words allocates once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/ids.h"

namespace headrace {

// One token in the making: bytes [begin, end) of the text.
struct MergeSymbol {
  TokenId id = -1;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// What two neighbours become. Lower ranks merge first; kNoMerge: these two do not.
inline constexpr std::uint32_t kNoMerge = std::numeric_limits<std::uint32_t>::max();
struct Merge {
  std::uint32_t rank = kNoMerge;
  TokenId id = -1;
};

struct MergeScratch {
  std::vector<std::uint32_t> prev;
  std::vector<std::uint32_t> next;
  std::vector<std::uint64_t> heap;
};

inline constexpr std::size_t kShortWord = 24;  // symbols

// `find(left, right)` gives the Merge of two neighbours.
template <typename Find>
void merge_short(std::vector<MergeSymbol>& symbols, const Find& find) {
  std::array<Merge, kShortWord> merges;  // of symbol i with its right neighbour
  std::size_t n = symbols.size();
  const auto update = [&](std::size_t i) {
    merges[i] = i + 1 < n ? find(symbols[i], symbols[i + 1]) : Merge{};
  };
  for (std::size_t i = 0; i < n; ++i) {
    update(i);
  }
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < n; ++i) {
      best = merges[i].rank < merges[best].rank ? i : best;
    }
    if (merges[best].rank == kNoMerge) {
      break;
    }
    symbols[best].id = merges[best].id;
    symbols[best].end = symbols[best + 1].end;
    for (std::size_t i = best + 1; i + 1 < n; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i] = merges[i + 1];
    }
    --n;
    update(best);
    if (best > 0) {
      update(best - 1);
    }
  }
  symbols.resize(n);
}

template <typename Find>
void merge_long(std::vector<MergeSymbol>& symbols, MergeScratch& scratch, const Find& find) {
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  const auto n = static_cast<std::uint32_t>(symbols.size());
  // No structured binding: clang 14 cannot capture one.
  auto& prev = scratch.prev;
  auto& next = scratch.next;
  auto& heap = scratch.heap;
  prev.resize(n);
  next.resize(n);
  heap.clear();
  const auto push = [&](std::uint32_t left, bool keep_order) {
    const Merge merge = find(symbols[left], symbols[next[left]]);
    if (merge.rank == kNoMerge) {
      return;
    }
    heap.push_back((std::uint64_t{merge.rank} << 32) | left);  // by rank, then by place
    if (keep_order) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    prev[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == n ? kNone : i + 1;
    if (i + 1 < n) {
      push(i, false);
    }
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    const auto left = static_cast<std::uint32_t>(top);
    const std::uint32_t right = next[left];
    if (symbols[left].end == symbols[left].begin || right == kNone) {
      continue;  // swallowed since, or last by now
    }
    // An entry is stale if its pair has changed. Should the new pair have the same rank, its own
    // entry is equal to this.
    const Merge merge = find(symbols[left], symbols[right]);
    if (merge.rank != top >> 32) {
      continue;
    }
    symbols[left].id = merge.id;
    symbols[left].end = symbols[right].end;
    symbols[right].end = symbols[right].begin;  // empty: gone
    next[left] = next[right];
    if (next[left] != kNone) {
      prev[next[left]] = left;
      push(left, true);
    }
    if (prev[left] != kNone) {
      push(prev[left], true);
    }
  }
  std::erase_if(symbols, [](const MergeSymbol& symbol) { return symbol.begin == symbol.end; });
}

template <typename Find>
void merge_all(std::vector<MergeSymbol>& symbols, MergeScratch& scratch, const Find& find) {
  if (symbols.size() <= kShortWord) {
    merge_short(symbols, find);
  } else {
    merge_long(symbols, scratch, find);
  }
}

}  // namespace headrace
