#include "tokenizer/internal/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace headrace {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

constexpr int kAlphabetEnd = 0x100 + 68;

struct Alphabet {
  std::array<char32_t, 256> to{};
  std::array<std::int16_t, kAlphabetEnd> from{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.from) {
    byte = -1;
  }
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t c = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.to[static_cast<std::size_t>(byte)] = c;
    alphabet.from[c] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

char32_t byte_to_alphabet(unsigned char byte) { return kAlphabet.to[byte]; }

std::string from_byte_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(i));
    if (!c.valid || c.code_point >= kAlphabetEnd || kAlphabet.from[c.code_point] < 0) {
      return std::string(text);
    }
    bytes += static_cast<char>(kAlphabet.from[c.code_point]);
    i += static_cast<std::size_t>(c.length);
  }
  return bytes;
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    append_utf8(text, byte_to_alphabet(static_cast<unsigned char>(byte)));
  }
  return text;
}

}  // namespace headrace
