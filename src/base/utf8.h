// UTF-8, strictly as RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF. Pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

struct Utf8Char {
  char32_t code_point = 0xFFFD;
  int length = 1;      // bytes consumed; an invalid byte is one character of length 1
  bool valid = false;  // false: code_point is U+FFFD
};

// The character at text[0]; text is not empty.
Utf8Char decode_utf8(std::string_view text);

// The offset of the first invalid byte, or npos.
std::size_t find_invalid_utf8(std::string_view text);

// How many bytes at the end may be the start of a character that is not complete yet: 0 to 3.
std::size_t incomplete_utf8_suffix(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

// The text with each maximal invalid part (WHATWG's rule) replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace headrace
