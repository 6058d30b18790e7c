// The name of a text in whole blocks: a chain in which each link covers all that came before. Pure
// function. XXH3, 128 bits, over the parent's link, the block's tokens and the salt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/ids.h"

namespace headrace {

struct BlockHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

using BlockHasher = std::function<BlockHash(
    const BlockHash& parent, std::span<const TokenId> tokens, std::uint64_t salt)>;

BlockHash hash_block(const BlockHash& parent, std::span<const TokenId> tokens, std::uint64_t salt);

}  // namespace headrace
