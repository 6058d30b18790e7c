#include "tokenizer/internal/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace headrace {
namespace {

// Names by which the families end an answer or a turn; a file often names only one of them as eos.
constexpr std::array<std::string_view, 12> kEndNames = {"<|im_end|>",
                                                        "<|endoftext|>",
                                                        "<|end_of_text|>",
                                                        "<|eot_id|>",
                                                        "<|eom_id|>",
                                                        "<|end|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<end_of_turn>",
                                                        "<eos>",
                                                        "</s>",
                                                        "<｜end▁of▁sentence｜>"};

Status check_sizes(const TokenizerData& data) {
  const std::size_t n = data.tokens.size();
  if (n == 0) {
    return make_error(ErrorCode::kCorrupt, "tokenizer: the vocabulary is empty");
  }
  if (n > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    return make_error(ErrorCode::kCorrupt, "tokenizer: {} tokens are more than an id can count", n);
  }
  if (data.kinds.size() != n) {
    return make_error(
        ErrorCode::kCorrupt, "tokenizer: {} token types for {} tokens", data.kinds.size(), n);
  }
  if (!data.scores.empty() && data.scores.size() != n) {
    return make_error(
        ErrorCode::kCorrupt, "tokenizer: {} scores for {} tokens", data.scores.size(), n);
  }
  return {};
}

Status check_entries(const TokenizerData& data) {
  for (std::size_t i = 0; i < data.kinds.size(); ++i) {
    const auto kind = static_cast<int>(data.kinds[i]);
    if (kind < static_cast<int>(TokenKind::kNormal) || kind > static_cast<int>(TokenKind::kByte)) {
      return make_error(
          ErrorCode::kCorrupt, "tokenizer: token {} has the unknown type {}", i, kind);
    }
  }
  for (std::size_t i = 0; i < data.scores.size(); ++i) {
    if (std::isnan(data.scores[i])) {
      return make_error(ErrorCode::kCorrupt, "tokenizer: the score of token {} is not a number", i);
    }
  }
  const std::array<std::pair<const char*, TokenId>, 5> named = {{{"bos", data.bos_id},
                                                                 {"eos", data.eos_id},
                                                                 {"eot", data.eot_id},
                                                                 {"unknown", data.unk_id},
                                                                 {"padding", data.pad_id}}};
  for (const auto& [name, id] : named) {
    if (id < -1 || (id >= 0 && static_cast<std::size_t>(id) >= data.tokens.size())) {
      return make_error(ErrorCode::kCorrupt,
                        "tokenizer: the {} token {} is not in the vocabulary of {}",
                        name,
                        id,
                        data.tokens.size());
    }
  }
  return {};
}

}  // namespace

Result<Vocabulary> Vocabulary::create(TokenizerData data) {
  HR_RETURN_IF_ERROR(check_sizes(data));
  HR_RETURN_IF_ERROR(check_entries(data));
  return Vocabulary(std::move(data));
}

Vocabulary::Vocabulary(TokenizerData data) : data_(std::move(data)) {
  ids_.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    ids_.emplace(data_.tokens[i], static_cast<TokenId>(i));
  }
  ends_generation_.resize(size());
  for (const std::string_view name : kEndNames) {
    const TokenId id = find(name);
    if (is_control(id) || kind(id) == TokenKind::kUserDefined) {
      ends_generation_[static_cast<std::size_t>(id)] = true;
    }
  }
  for (const TokenId id : {data_.eos_id, data_.eot_id}) {
    if (id >= 0) {
      ends_generation_[static_cast<std::size_t>(id)] = true;
    }
  }
}

std::string_view Vocabulary::piece(TokenId id) const {
  if (!contains(id)) {
    return {};
  }
  return data_.tokens[static_cast<std::size_t>(id)];
}

TokenKind Vocabulary::kind(TokenId id) const {
  return contains(id) ? data_.kinds[static_cast<std::size_t>(id)] : TokenKind::kUnused;
}

bool Vocabulary::is_control(TokenId id) const {
  return kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUnknown;
}

bool Vocabulary::is_end_of_generation(TokenId id) const {
  return contains(id) && ends_generation_[static_cast<std::size_t>(id)];
}

TokenId Vocabulary::find(std::string_view piece) const {
  const auto it = ids_.find(piece);
  return it == ids_.end() ? -1 : it->second;
}

}  // namespace headrace
