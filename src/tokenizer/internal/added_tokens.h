// Tokens that are found in the text before any merging: control and unknown tokens (only where the
// text is trusted) and user-defined ones (everywhere). Leftmost first, then longest. A byte trie:
// one step per byte and position, at most kMaxAddedTokenBytes. Immutable after create(), any
// thread.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tokenizer/internal/vocabulary.h"

namespace headrace {

inline constexpr std::size_t kMaxAddedTokenBytes = 512;

// A half-open range of byte offsets in which control tokens may match; ranges are sorted and do not
// touch.
struct TrustedRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class AddedTokens {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    TokenId id = -1;
  };

  // `escape` turns a token as the file writes it into what it reads like in the text that is
  // searched.
  static Result<AddedTokens> create(const Vocabulary& vocabulary,
                                    const std::function<std::string(std::string_view)>& escape);

  // All matches in order, none overlapping.
  std::vector<Match> find(std::string_view text, std::span<const TrustedRange> trusted) const;

 private:
  struct Node {
    TokenId id = -1;
    bool needs_trust = false;
  };

  void insert(std::string_view text, TokenId id, bool needs_trust);
  Match longest_at(std::string_view text, std::size_t begin, std::size_t trusted_end) const;

  std::vector<Node> nodes_{1};
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node * 256 + byte
  std::bitset<256> first_bytes_;
};

}  // namespace headrace
