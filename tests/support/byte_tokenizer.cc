#include "support/byte_tokenizer.h"

#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace headrace::testing {
namespace {

// GPT-2's printable character for a byte: itself where printable, else the next of U+0100 on.
std::string character_of(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  char32_t code_point = static_cast<char32_t>(byte);
  if (!printable(byte)) {
    code_point = 0x100;
    for (int b = 0; b < byte; ++b) {
      code_point += printable(b) ? 0 : 1;
    }
  }
  std::string result;
  append_utf8(result, code_point);
  return result;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_byte_tokenizer(const std::vector<std::string>& words) {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = "smollm";
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.push_back(character_of(byte));
    data.kinds.push_back(TokenKind::kNormal);
  }
  data.tokens.emplace_back("<|im_end|>");
  data.kinds.push_back(TokenKind::kControl);
  data.eos_id = kEndToken;
  for (const std::string& word : words) {
    std::string piece;
    for (const char c : word) {
      piece += character_of(static_cast<unsigned char>(c));
    }
    data.tokens.push_back(std::move(piece));
    data.kinds.push_back(TokenKind::kNormal);
  }
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(std::move(data));
  HR_CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char c : text) {
    tokens.push_back(static_cast<unsigned char>(c));
  }
  return tokens;
}

}  // namespace headrace::testing
