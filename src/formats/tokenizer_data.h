// What a model file says about its tokenizer and its chat template, checked for type, length and
// range, not yet built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace headrace {

enum class TokenKind : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct TokenizerData {
  std::string
      model;  // GGUF's tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE)
  std::string pre;  // pre-tokenizer's name, "" where the file has none
  std::vector<std::string> tokens;
  std::vector<float> scores;        // empty or one per token
  std::vector<TokenKind> kinds;     // one per token
  std::vector<std::string> merges;  // "left right", in order of rank

  TokenId bos_id = -1;  // -1: none
  TokenId eos_id = -1;
  TokenId eot_id = -1;  // end of turn, where it differs
  TokenId unk_id = -1;
  TokenId pad_id = -1;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;

  std::string chat_template;  // empty: none
};

}  // namespace headrace
