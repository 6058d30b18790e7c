#include "kv/block_hash.h"

#include <array>
#include <xxhash.h>

namespace headrace {

BlockHash hash_block(const BlockHash& parent, std::span<const TokenId> tokens, std::uint64_t salt) {
  const std::array<std::uint64_t, 3> head = {parent.low, parent.high, salt};
  const XXH128_hash_t seed = XXH3_128bits(head.data(), sizeof(head));
  const XXH128_hash_t text = XXH3_128bits_withSeed(tokens.data(), tokens.size_bytes(), seed.low64);
  return {text.low64 ^ seed.high64, text.high64 + seed.high64};
}

}  // namespace headrace
