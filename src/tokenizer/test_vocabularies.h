// Tiny vocabularies for tests, whose ids can be checked by hand.
#pragma once

#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "formats/tokenizer_data.h"
#include "tokenizer/internal/byte_alphabet.h"

namespace headrace {

// Ids 0 to 255 are the bytes, 256 to 263 "he", "ll", "hell", "hello", " w", " wo", "12", "  "; 264
// <bos>, 265 <eos>, 266 <|im_start|>, 267 <|im_end|> (control), 268 <tool> (user-defined), 269
// [PAD] (unused).
inline TokenizerData byte_level_data() {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = "smollm";
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  }
  for (const char* piece : {"he", "ll", "hell", "hello", "Ġw", "Ġwo", "12", "ĠĠ"}) {
    data.tokens.emplace_back(piece);
  }
  data.kinds.assign(data.tokens.size(), TokenKind::kNormal);
  data.merges = {"h e", "l l", "he ll", "hell o", "Ġ w", "Ġw o", "1 2", "Ġ Ġ"};
  for (const char* piece : {"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"}) {
    data.tokens.emplace_back(piece);
    data.kinds.push_back(TokenKind::kControl);
  }
  data.tokens.emplace_back("<tool>");
  data.kinds.push_back(TokenKind::kUserDefined);
  data.tokens.emplace_back("[PAD]");
  data.kinds.push_back(TokenKind::kUnused);
  data.bos_id = 264;
  data.eos_id = 265;
  return data;
}

// Ids 0 <unk>, 1 <bos>, 2 <eos>, 3 <end_of_turn> (control), 4 "\n\n" and 5 "  " (user-defined), 6
// to 261 the byte tokens, 262 "▁", 263 "h", 264 "e", 265 "l", 266 "o", 267 "ll", 268 "he", 269
// "hell", 270 "▁he", 271 "▁hello", 272 "é".
inline TokenizerData sentencepiece_data() {
  TokenizerData data;
  data.model = "llama";
  const auto add = [&data](std::string piece, TokenKind kind, float score) {
    data.tokens.push_back(std::move(piece));
    data.kinds.push_back(kind);
    data.scores.push_back(score);
  };
  add("<unk>", TokenKind::kUnknown, 0);
  add("<bos>", TokenKind::kControl, 0);
  add("<eos>", TokenKind::kControl, 0);
  add("<end_of_turn>", TokenKind::kControl, 0);
  add("\n\n", TokenKind::kUserDefined, 0);
  add("  ", TokenKind::kUserDefined, 0);
  for (int byte = 0; byte < 256; ++byte) {
    add(fmt::format("<0x{:02X}>", byte), TokenKind::kByte, 0);
  }
  float score = -10;
  for (const char* piece : {"▁", "h", "e", "l", "o"}) {
    add(piece, TokenKind::kNormal, score--);
  }
  add("ll", TokenKind::kNormal, -1);
  add("he", TokenKind::kNormal, -2);
  add("hell", TokenKind::kNormal, -3);
  add("▁he", TokenKind::kNormal, -4);
  add("▁hello", TokenKind::kNormal, -5);
  add("é", TokenKind::kNormal, -20);
  data.unk_id = 0;
  data.bos_id = 1;
  data.eos_id = 2;
  data.add_bos = true;
  data.add_space_prefix = false;
  return data;
}

}  // namespace headrace
