#include "tokenizer/internal/added_tokens.h"

namespace headrace {
namespace {

std::uint64_t edge_key(std::uint32_t node, char byte) {
  return std::uint64_t{node} * 256 + static_cast<unsigned char>(byte);
}

}  // namespace

Result<AddedTokens> AddedTokens::create(
    const Vocabulary& vocabulary, const std::function<std::string(std::string_view)>& escape) {
  AddedTokens added;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const bool needs_trust = vocabulary.is_control(id);
    if (!needs_trust && vocabulary.kind(id) != TokenKind::kUserDefined) {
      continue;
    }
    const std::string text = escape(vocabulary.piece(id));
    if (text.size() > kMaxAddedTokenBytes) {
      return make_error(ErrorCode::kCorrupt,
                        "tokenizer: special token {} has {} bytes; {} is the limit",
                        id,
                        text.size(),
                        kMaxAddedTokenBytes);
    }
    if (!text.empty()) {
      added.insert(text, id, needs_trust);
    }
  }
  return added;
}

void AddedTokens::insert(std::string_view text, TokenId id, bool needs_trust) {
  first_bytes_.set(static_cast<unsigned char>(text[0]));
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto [edge, is_new] =
        edges_.try_emplace(edge_key(node, byte), static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.emplace_back();
    }
    node = edge->second;
  }
  if (nodes_[node].id < 0) {
    nodes_[node] = {id, needs_trust};
  }
}

AddedTokens::Match AddedTokens::longest_at(std::string_view text,
                                           std::size_t begin,
                                           std::size_t trusted_end) const {
  Match best;
  std::uint32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto edge = edges_.find(edge_key(node, text[i]));
    if (edge == edges_.end()) {
      break;
    }
    node = edge->second;
    if (nodes_[node].id >= 0 && (!nodes_[node].needs_trust || i + 1 <= trusted_end)) {
      best = {begin, i + 1, nodes_[node].id};
    }
  }
  return best;
}

std::vector<AddedTokens::Match> AddedTokens::find(std::string_view text,
                                                  std::span<const TrustedRange> trusted) const {
  std::vector<Match> matches;
  std::size_t range_idx = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    if (!first_bytes_.test(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    while (range_idx < trusted.size() && trusted[range_idx].end <= i) {
      ++range_idx;
    }
    const bool inside = range_idx < trusted.size() && trusted[range_idx].begin <= i;
    const Match match = longest_at(text, i, inside ? trusted[range_idx].end : 0);
    if (match.id < 0) {
      ++i;
      continue;
    }
    matches.push_back(match);
    i = match.end;
  }
  return matches;
}

}  // namespace headrace
