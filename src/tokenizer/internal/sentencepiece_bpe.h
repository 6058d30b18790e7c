// SentencePiece BPE with byte fallback (GGUF's model "llama"; Kudo and Richardson 2018): spaces are
// written "▁", the whole text is one word, and of all neighbours whose joined text is a token the
// one with the best score merges first, the leftmost of equals. A character that is no token
// becomes its UTF-8 bytes. Unused, control and byte tokens are never made by merging.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tokenizer/internal/merge-inl.h"
#include "tokenizer/internal/text_model.h"
#include "tokenizer/internal/vocabulary.h"

namespace headrace {

class SentencePieceBpe final : public TextModel {
 public:
  // Errors: no scores, or not all 256 byte tokens. The vocabulary must outlive the model.
  static Result<std::unique_ptr<SentencePieceBpe>> create(const Vocabulary& vocabulary);

  std::string escape(std::string_view text) const override;
  void encode(std::string_view text, std::vector<TokenId>& ids) const override;
  std::string token_bytes(TokenId id) const override;
  std::size_t least_bytes(std::string_view text) const override;
  std::size_t most_bytes(TokenId id) const override;
  bool adds_leading_space() const override { return vocabulary_->data().add_space_prefix; }

 private:
  explicit SentencePieceBpe(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
  Status read_byte_tokens();
  void rank_pieces();
  Merge find(std::string_view piece) const;
  void append_ids(std::string_view text,
                  const MergeSymbol& symbol,
                  std::vector<TokenId>& ids) const;
  std::size_t word_end(std::string_view text, std::size_t begin) const;

  const Vocabulary* vocabulary_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Merge, Hash, std::equal_to<>>
      pieces_;                         // escaped text of what merging may make
  std::size_t longest_piece_ = 0;      // bytes
  std::bitset<256> joins_space_mark_;  // bytes that some piece has before a "▁"
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace headrace
