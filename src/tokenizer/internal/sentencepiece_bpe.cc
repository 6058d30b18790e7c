#include "tokenizer/internal/sentencepiece_bpe.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/utf8.h"

namespace headrace {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁, U+2581

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// "<0x0A>" is 10; -1 for anything else.
int byte_of_token(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') {
    return -1;
  }
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace

Result<std::unique_ptr<SentencePieceBpe>> SentencePieceBpe::create(const Vocabulary& vocabulary) {
  if (vocabulary.data().scores.empty()) {
    return make_error(ErrorCode::kCorrupt,
                      "tokenizer: model 'llama' needs a score for each token; the file has none");
  }
  std::unique_ptr<SentencePieceBpe> model(new SentencePieceBpe(vocabulary));
  HR_RETURN_IF_ERROR(model->read_byte_tokens());
  model->rank_pieces();
  return model;
}

Status SentencePieceBpe::read_byte_tokens() {
  byte_ids_.fill(-1);
  for (std::size_t i = 0; i < vocabulary_->size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (vocabulary_->kind(id) != TokenKind::kByte) {
      continue;
    }
    const int byte = byte_of_token(vocabulary_->piece(id));
    if (byte < 0) {
      return make_error(ErrorCode::kCorrupt,
                        "tokenizer: byte token {} reads '{}', not <0x00> to <0xFF>",
                        id,
                        vocabulary_->piece(id));
    }
    if (byte_ids_[static_cast<std::size_t>(byte)] < 0) {
      byte_ids_[static_cast<std::size_t>(byte)] = id;
    }
  }
  const auto missing = std::find(byte_ids_.begin(), byte_ids_.end(), -1);
  if (missing != byte_ids_.end()) {
    return make_error(ErrorCode::kCorrupt,
                      "tokenizer: the byte token <0x{:02X}> is missing",
                      missing - byte_ids_.begin());
  }
  return {};
}

// Equal scores get equal ranks, so that place decides between them.
void SentencePieceBpe::rank_pieces() {
  const auto& scores = vocabulary_->data().scores;
  std::vector<float> distinct = scores;
  std::sort(distinct.begin(), distinct.end(), std::greater<>());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  pieces_.reserve(vocabulary_->size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenKind kind = vocabulary_->kind(id);
    if (kind != TokenKind::kNormal && kind != TokenKind::kUserDefined) {
      continue;
    }
    const auto place =
        std::lower_bound(distinct.begin(), distinct.end(), scores[i], std::greater<>());
    std::string piece = escape(vocabulary_->piece(id));
    longest_piece_ = std::max(longest_piece_, piece.size());
    for (std::size_t at = piece.find(kSpaceMark, 1); at != std::string::npos;
         at = piece.find(kSpaceMark, at + 1)) {
      joins_space_mark_.set(static_cast<unsigned char>(piece[at - 1]));
    }
    pieces_.emplace(std::move(piece),
                    Merge{static_cast<std::uint32_t>(place - distinct.begin()), id});
  }
}

std::string SentencePieceBpe::escape(std::string_view text) const {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == ' ') {
      escaped += kSpaceMark;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

Merge SentencePieceBpe::find(std::string_view piece) const {
  if (piece.size() > longest_piece_) {
    return {};
  }
  const auto it = pieces_.find(piece);
  return it == pieces_.end() ? Merge{} : it->second;
}

// Where the text can be cut without changing a merge: before a "▁" after a byte that no piece has
// there. Words are short, so this is several times faster than one heap over the whole text.
std::size_t SentencePieceBpe::word_end(std::string_view text, std::size_t begin) const {
  std::size_t at = text.find(kSpaceMark, begin + 1);
  while (at != std::string_view::npos &&
         joins_space_mark_.test(static_cast<unsigned char>(text[at - 1]))) {
    at = text.find(kSpaceMark, at + 1);
  }
  return std::min(at, text.size());
}

void SentencePieceBpe::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::string prefixed;
  if (adds_leading_space()) {
    prefixed.append(kSpaceMark).append(text);
    text = prefixed;
  }
  std::vector<MergeSymbol> symbols;
  MergeScratch scratch;
  const auto find_merge = [&](const MergeSymbol& left, const MergeSymbol& right) {
    return find(text.substr(left.begin, right.end - left.begin));
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t word = word_end(text, begin);
    symbols.clear();
    while (begin < word) {
      const std::size_t end =
          begin + static_cast<std::size_t>(decode_utf8(text.substr(begin)).length);
      symbols.push_back({find(text.substr(begin, end - begin)).id,
                         static_cast<std::uint32_t>(begin),
                         static_cast<std::uint32_t>(end)});
      begin = end;
    }
    merge_all(symbols, scratch, find_merge);
    for (const MergeSymbol& symbol : symbols) {
      append_ids(text, symbol, ids);
    }
  }
}

void SentencePieceBpe::append_ids(std::string_view text,
                                  const MergeSymbol& symbol,
                                  std::vector<TokenId>& ids) const {
  if (symbol.id >= 0) {
    ids.push_back(symbol.id);
    return;
  }
  for (std::size_t i = symbol.begin; i < symbol.end; ++i) {
    ids.push_back(byte_ids_[static_cast<unsigned char>(text[i])]);
  }
}

std::size_t SentencePieceBpe::least_bytes(std::string_view text) const {
  const auto num_spaces = static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  return text.size() + num_spaces * (kSpaceMark.size() - 1);
}

std::size_t SentencePieceBpe::most_bytes(TokenId id) const {
  return vocabulary_->kind(id) == TokenKind::kByte ? 1 : escape(vocabulary_->piece(id)).size();
}

std::string SentencePieceBpe::token_bytes(TokenId id) const {
  const std::string_view piece = vocabulary_->piece(id);
  if (vocabulary_->kind(id) == TokenKind::kByte) {
    return std::string(1, static_cast<char>(byte_of_token(piece)));
  }
  std::string bytes;
  for (std::size_t i = 0; i < piece.size();) {
    if (piece.substr(i, kSpaceMark.size()) == kSpaceMark) {
      bytes += ' ';
      i += kSpaceMark.size();
    } else {
      bytes += piece[i++];
    }
  }
  return bytes;
}

}  // namespace headrace
