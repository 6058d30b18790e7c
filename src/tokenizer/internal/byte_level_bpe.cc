#include "tokenizer/internal/byte_level_bpe.h"

#include <utility>

#include "tokenizer/internal/byte_alphabet.h"

namespace headrace {
namespace {

std::uint64_t pair_key(TokenId left, TokenId right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
         static_cast<std::uint32_t>(right);
}

}  // namespace

void MergeTable::reserve(std::size_t num_merges) {
  int bits = 1;
  while ((std::size_t{1} << bits) < 2 * num_merges + 2) {
    ++bits;
  }
  slots_.assign(std::size_t{1} << bits, Slot{});
  shift_ = 64 - bits;
}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  std::size_t slot = (key * 0x9E3779B97F4A7C15U) >> shift_;  // Fibonacci hashing
  while (slots_[slot].key != key && slots_[slot].key != kEmpty) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t key = pair_key(left, right);
  slots_[slot_of(key)] = {key, merge};
}

Merge MergeTable::find(TokenId left, TokenId right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

Result<std::unique_ptr<ByteLevelBpe>> ByteLevelBpe::create(const Vocabulary& vocabulary) {
  HR_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::create(vocabulary.data().pre));
  std::unique_ptr<ByteLevelBpe> model(new ByteLevelBpe(vocabulary, std::move(pre_tokenizer)));
  HR_RETURN_IF_ERROR(model->add_merges());
  return model;
}

ByteLevelBpe::ByteLevelBpe(const Vocabulary& vocabulary, PreTokenizer pre_tokenizer)
    : vocabulary_(&vocabulary), pre_tokenizer_(std::move(pre_tokenizer)) {
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.find(to_byte_alphabet({&c, 1}));
    const bool in_utf8 = byte < 0xF5 && byte != 0xC0 && byte != 0xC1;
    has_all_bytes_ = has_all_bytes_ && (!in_utf8 || byte_ids_[byte] >= 0);
  }
}

Status ByteLevelBpe::add_merges() {
  const auto& merges = vocabulary_->data().merges;
  if (merges.size() >= kNoMerge) {
    return make_error(ErrorCode::kCorrupt, "tokenizer: {} merges are too many", merges.size());
  }
  merges_.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string_view::npos) {
      return make_error(ErrorCode::kCorrupt,
                        "tokenizer: merge {} is not two tokens with a space between: '{}'",
                        i,
                        merge);
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const std::string whole = std::string(left).append(right);
    for (const std::string_view part : {left, right, std::string_view(whole)}) {
      if (vocabulary_->find(part) < 0) {
        return make_error(ErrorCode::kCorrupt,
                          "tokenizer: merge {} ('{}') needs '{}', which is no token",
                          i,
                          merge,
                          part);
      }
    }
    merges_.set(vocabulary_->find(left),
                vocabulary_->find(right),
                {static_cast<std::uint32_t>(i), vocabulary_->find(whole)});
  }
  return {};
}

void ByteLevelBpe::encode(std::string_view text, std::vector<TokenId>& ids) const {
  const std::string normalized = pre_tokenizer_.normalize(text);
  std::vector<MergeSymbol> symbols;
  MergeScratch scratch;
  const auto find = [this](const MergeSymbol& left, const MergeSymbol& right) {
    return merges_.find(left.id, right.id);
  };
  pre_tokenizer_.for_each_word(normalized, [&](std::string_view word) {
    symbols.clear();
    for (std::size_t i = 0; i < word.size(); ++i) {
      const TokenId id = byte_ids_[static_cast<unsigned char>(word[i])];
      if (id >= 0) {
        symbols.push_back({id, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + 1)});
      }
    }
    merge_all(symbols, scratch, find);
    for (const MergeSymbol& symbol : symbols) {
      ids.push_back(symbol.id);
    }
  });
}

// Bytes without a token are dropped. Normalizing to NFC may shorten: of all spellings of one
// character the longest is 3.5 times as long (seven bytes of U+1FBE U+0308 U+0301 become the two of
// U+0390).
std::size_t ByteLevelBpe::least_bytes(std::string_view text) const {
  constexpr std::size_t kNfcShrinks = 4;
  std::size_t num_kept = 0;
  for (const char c : text) {
    num_kept += byte_ids_[static_cast<unsigned char>(c)] >= 0 ? 1 : 0;
  }
  if (!pre_tokenizer_.normalizes()) {
    return num_kept;
  }
  return has_all_bytes_ ? text.size() / kNfcShrinks : 0;
}

// Merging makes a token of the bytes that it stands for; a token that is found as it is written
// takes its own text.
std::size_t ByteLevelBpe::most_bytes(TokenId id) const {
  return vocabulary_->kind(id) == TokenKind::kNormal ? token_bytes(id).size()
                                                     : vocabulary_->piece(id).size();
}

std::string ByteLevelBpe::token_bytes(TokenId id) const {
  return from_byte_alphabet(vocabulary_->piece(id));
}

}  // namespace headrace
