// Characters as Python's string methods see them, and walking UTF-8 by characters. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::jinja {

enum class CharClass {
  kAlpha,
  kDecimal,
  kDigit,
  kNumeric,
  kSpace,
  kPrintable,
  kUpper,
  kLower,
  kTitle
};
enum class CaseMap { kUpper, kLower, kTitle };

bool is(CharClass wanted, char32_t c);
bool is_alnum(char32_t c);
bool is_cased(char32_t c);

// The character's mapping, which may be several characters ("ß" to "SS").
void append_mapped(std::string& out, CaseMap map, char32_t c);

struct Char {
  char32_t code = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The character that begins at `at` (at < text.size()); an invalid byte is a character of its own.
Char char_at(std::string_view text, std::size_t at);
// The character that ends at `end` (end > 0).
Char char_before(std::string_view text, std::size_t end);

std::size_t count_chars(std::string_view text);
// The byte offset of the n-th character, or text.size() if there are fewer.
std::size_t offset_of_char(std::string_view text, std::size_t n);
// Byte offsets of all characters, and text.size() at the end.
std::vector<std::size_t> char_offsets(std::string_view text);

// The offset of the first character at or after `at` that is no white space.
std::size_t skip_space(std::string_view text, std::size_t at);
// The end of the text without the white space at its end.
std::size_t trimmed_end(std::string_view text);

}  // namespace headrace::jinja
