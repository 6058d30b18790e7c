// Byte-level BPE (GGUF's model "gpt2"): normalize, split into words, each word's bytes merged by
// the file's ranks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/internal/merge-inl.h"
#include "tokenizer/internal/pre_tokenizer.h"
#include "tokenizer/internal/text_model.h"
#include "tokenizer/internal/vocabulary.h"

namespace headrace {

// Pairs of ids to merges: open addressing, at most half full.
class MergeTable {
 public:
  void reserve(std::size_t num_merges);
  void set(TokenId left, TokenId right, Merge merge);  // the last one counts, as in the reference
  Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  std::size_t slot_of(std::uint64_t key) const;

  std::vector<Slot> slots_ = std::vector<Slot>(2);
  int shift_ = 63;
};

class ByteLevelBpe final : public TextModel {
 public:
  // Does not keep the merges' text. The vocabulary must outlive the model.
  static Result<std::unique_ptr<ByteLevelBpe>> create(const Vocabulary& vocabulary);

  std::string escape(std::string_view text) const override { return std::string(text); }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override;
  std::string token_bytes(TokenId id) const override;
  std::size_t least_bytes(std::string_view text) const override;
  std::size_t most_bytes(TokenId id) const override;
  bool adds_leading_space() const override { return false; }

 private:
  ByteLevelBpe(const Vocabulary& vocabulary, PreTokenizer pre_tokenizer);
  Status add_merges();

  const Vocabulary* vocabulary_;
  PreTokenizer pre_tokenizer_;
  std::array<TokenId, 256> byte_ids_{};  // -1: the vocabulary has no token for this byte
  bool has_all_bytes_ = true;            // of valid UTF-8
  MergeTable merges_;
};

}  // namespace headrace
