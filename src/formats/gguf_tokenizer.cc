#include "formats/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "formats/internal/printable.h"

namespace headrace {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kKinds = "tokenizer.ggml.token_type";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

constexpr std::array<std::string_view, 8> kBpeWithBos = {
    "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "lfm2", "tekken"};

// In order of preference.
constexpr std::array<std::string_view, 8> kEndOfTurn = {"<|eot_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "<|end_of_text|>",
                                                        "<EOT>",
                                                        "<end_of_utterance>"};

template <typename... Args>
Error corrupt(const GgufMetadata& meta,
              std::string_view key,
              fmt::format_string<Args...> format,
              Args&&... args) {
  return make_error(ErrorCode::kCorrupt, format, std::forward<Args>(args)...)
      .within(fmt::format("{}: key '{}'", meta.file_name(), key));
}

Status check_length(const GgufMetadata& meta,
                    std::string_view key,
                    std::size_t length,
                    std::size_t num_tokens) {
  if (length != num_tokens) {
    return corrupt(meta, key, "{} elements for {} tokens", length, num_tokens);
  }
  return {};
}

Status read_vocabulary(const GgufMetadata& meta, TokenizerData& data) {
  HR_ASSIGN_OR_RETURN(const auto tokens, meta.strings(kTokens));
  if (tokens.empty() || tokens.size() > std::numeric_limits<TokenId>::max()) {
    return corrupt(meta, kTokens, "{} tokens; at least 1 is needed", tokens.size());
  }
  data.tokens.assign(tokens.begin(), tokens.end());
  return {};
}

Status read_kinds(const GgufMetadata& meta, TokenizerData& data) {
  data.kinds.assign(data.tokens.size(), TokenKind::kNormal);
  if (!meta.has(kKinds)) {
    return {};
  }
  HR_ASSIGN_OR_RETURN(const auto kinds, meta.ints(kKinds));
  HR_RETURN_IF_ERROR(check_length(meta, kKinds, kinds.size(), data.tokens.size()));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] < 0 || kinds[i] > 6) {
      return corrupt(meta, kKinds, "token {} has type {}; 0 to 6 are known", i, kinds[i]);
    }
    if (kinds[i] != 0) {  // 0 is "undefined", read as a normal token
      data.kinds[i] = static_cast<TokenKind>(kinds[i]);
    }
  }
  return {};
}

Status read_scores(const GgufMetadata& meta, TokenizerData& data) {
  if (!meta.has(kScores) && data.model != "llama") {
    return {};
  }
  HR_ASSIGN_OR_RETURN(data.scores, meta.floats(kScores));
  HR_RETURN_IF_ERROR(check_length(meta, kScores, data.scores.size(), data.tokens.size()));
  for (std::size_t i = 0; i < data.scores.size(); ++i) {
    if (std::isnan(data.scores[i])) {
      return corrupt(meta, kScores, "token {} has no number as its score", i);
    }
  }
  return {};
}

Status read_merges(const GgufMetadata& meta, TokenizerData& data) {
  if (!meta.has(kMerges) && data.model != "gpt2") {
    return {};
  }
  HR_ASSIGN_OR_RETURN(const auto merges, meta.strings(kMerges));
  for (std::size_t i = 0; i < merges.size(); ++i) {
    // The left part may itself start with a space in vocabularies that keep spaces as they are.
    const std::size_t space = merges[i].find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merges[i].size()) {
      return corrupt(meta,
                     kMerges,
                     "merge {} is '{}', not two parts with a space between them",
                     i,
                     printable(merges[i]));
    }
  }
  data.merges.assign(merges.begin(), merges.end());
  return {};
}

// -1 where the file has no such key, or says "none" as -1 of either sign.
Result<TokenId> read_id(const GgufMetadata& meta, std::string_view key, std::size_t num_tokens) {
  HR_ASSIGN_OR_RETURN(const std::int64_t id, meta.i64_or(key, -1));
  if (id == -1 || id == std::numeric_limits<std::uint32_t>::max()) {
    return TokenId{-1};
  }
  if (id < 0 || static_cast<std::uint64_t>(id) >= num_tokens) {
    return corrupt(meta, key, "id {} is outside the vocabulary of {} tokens", id, num_tokens);
  }
  return static_cast<TokenId>(id);
}

TokenId find_end_of_turn(const TokenizerData& data) {
  TokenId best = -1;
  std::size_t best_rank = kEndOfTurn.size();
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const TokenKind kind = data.kinds[i];
    if ((kind != TokenKind::kControl && kind != TokenKind::kUserDefined) ||
        static_cast<TokenId>(i) == data.eos_id) {
      continue;
    }
    const auto found = std::find(kEndOfTurn.begin(), kEndOfTurn.end(), data.tokens[i]);
    const auto rank = static_cast<std::size_t>(found - kEndOfTurn.begin());
    if (rank < best_rank) {
      best = static_cast<TokenId>(i);
      best_rank = rank;
    }
  }
  return best;
}

Status read_special_ids(const GgufMetadata& meta, TokenizerData& data) {
  const std::size_t num_tokens = data.tokens.size();
  HR_ASSIGN_OR_RETURN(data.bos_id, read_id(meta, "tokenizer.ggml.bos_token_id", num_tokens));
  HR_ASSIGN_OR_RETURN(data.eos_id, read_id(meta, "tokenizer.ggml.eos_token_id", num_tokens));
  HR_ASSIGN_OR_RETURN(data.eot_id, read_id(meta, "tokenizer.ggml.eot_token_id", num_tokens));
  HR_ASSIGN_OR_RETURN(data.unk_id, read_id(meta, "tokenizer.ggml.unknown_token_id", num_tokens));
  HR_ASSIGN_OR_RETURN(data.pad_id, read_id(meta, "tokenizer.ggml.padding_token_id", num_tokens));
  if (data.eot_id == data.eos_id) {
    data.eot_id = -1;
  }
  if (data.eot_id == -1) {
    data.eot_id = find_end_of_turn(data);
  }
  return {};
}

Status read_switches(const GgufMetadata& meta, TokenizerData& data) {
  const bool is_sentencepiece = data.model == "llama";
  const bool adds_bos =
      is_sentencepiece ||
      std::find(kBpeWithBos.begin(), kBpeWithBos.end(), data.pre) != kBpeWithBos.end();
  HR_ASSIGN_OR_RETURN(data.add_bos, meta.boolean_or("tokenizer.ggml.add_bos_token", adds_bos));
  HR_ASSIGN_OR_RETURN(data.add_eos, meta.boolean_or("tokenizer.ggml.add_eos_token", false));
  HR_ASSIGN_OR_RETURN(data.add_space_prefix,
                      meta.boolean_or("tokenizer.ggml.add_space_prefix", is_sentencepiece));
  return {};
}

}  // namespace

Result<TokenizerData> read_tokenizer(const GgufFile& file) {
  const GgufMetadata& meta = file.metadata();
  TokenizerData data;
  HR_ASSIGN_OR_RETURN(data.model, meta.string("tokenizer.ggml.model"));
  if (data.model != "gpt2" && data.model != "llama") {
    return make_error(
        ErrorCode::kUnsupported,
        "{}: tokenizer '{}' is not supported yet; supported are gpt2 (byte-level BPE) and llama "
        "(SentencePiece BPE)",
        file.name(),
        printable(data.model));
  }
  HR_ASSIGN_OR_RETURN(data.pre, meta.string_or("tokenizer.ggml.pre", ""));
  HR_RETURN_IF_ERROR(read_vocabulary(meta, data));
  HR_RETURN_IF_ERROR(read_kinds(meta, data));
  HR_RETURN_IF_ERROR(read_scores(meta, data));
  HR_RETURN_IF_ERROR(read_merges(meta, data));
  HR_RETURN_IF_ERROR(read_special_ids(meta, data));
  HR_RETURN_IF_ERROR(read_switches(meta, data));
  HR_ASSIGN_OR_RETURN(data.chat_template, meta.string_or("tokenizer.chat_template", ""));
  return data;
}

}  // namespace headrace
