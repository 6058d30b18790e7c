#include "chat/literals.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/utf8.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_digit(c)) {
    return c - '0';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'Z') {
    return c - 'A' + 10;
  }
  return 99;
}

// Digits with single underscores between them, from `at`; the end, or `at` if there are none.
std::size_t skip_digits(std::string_view text, std::size_t at, int base) {
  std::size_t end = at;
  while (end < text.size()) {
    const bool separates =
        text[end] == '_' && end > at && end + 1 < text.size() && digit_value(text[end + 1]) < base;
    if (!separates && digit_value(text[end]) >= base) {
      break;
    }
    ++end;
  }
  return end;
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '_') {
      out += c;
    }
  }
  return out;
}

bool accumulate(std::string_view digits, int base, Int& value) {
  value = 0;
  for (const char c : digits) {
    if (c == '_') {
      continue;
    }
    if (__builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit_value(c), &value)) {
      return false;
    }
  }
  return true;
}

std::size_t float_length(std::string_view text) {
  std::size_t end = skip_digits(text, 0, 10);
  if (end == 0) {
    return 0;
  }
  bool is_float = false;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = skip_digits(text, end + 1, 10);
    if (fraction > end + 1) {
      end = fraction;
      is_float = true;
    }
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) {
      ++digits;
    }
    const std::size_t exponent = skip_digits(text, digits, 10);
    if (exponent > digits) {
      end = exponent;
      is_float = true;
    }
  }
  return is_float ? end : 0;
}

int prefix_base(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') {
    return 10;
  }
  switch (text[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 10;
  }
}

std::string_view strip_space(std::string_view text) {
  text = text.substr(0, trimmed_end(text));
  return text.substr(skip_space(text, 0));
}

// Digits of other scripts count as digits for int() and float().
std::string ascii_digits(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code >= 0x80 && is(CharClass::kDecimal, c.code)) {
      char32_t zero = c.code;
      while (is(CharClass::kDecimal, zero - 1) && c.code - zero < 9) {
        --zero;
      }
      out += static_cast<char>('0' + (c.code - zero) % 10);
    } else {
      out.append(text.substr(at, c.end - at));
    }
    at = c.end;
  }
  return out;
}

bool append_hex_escape(std::string& out,
                       std::string_view body,
                       std::size_t& at,
                       std::size_t digits) {
  if (at + digits > body.size()) {
    return false;
  }
  char32_t code = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const int v = digit_value(body[at + i]);
    if (v > 15) {
      return false;
    }
    code = code * 16 + static_cast<char32_t>(v);
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return false;
  }
  append_utf8(out, code);
  at += digits;
  return true;
}

void append_octal_escape(std::string& out, std::string_view body, std::size_t& at) {
  char32_t code = 0;
  for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i) {
    code = code * 8 + static_cast<char32_t>(body[at++] - '0');
  }
  append_utf8(out, code);
}

// `at` is behind the backslash.
bool append_escape(std::string& out, std::string_view body, std::size_t& at) {
  static constexpr std::string_view kNames = "abfnrtv\\'\"";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
  const char c = body[at];
  if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
    out += kValues[i];
    ++at;
    return true;
  }
  if (c >= '0' && c <= '7') {
    append_octal_escape(out, body, at);
    return true;
  }
  if (c == '\n') {
    ++at;
    return true;
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    ++at;
    return append_hex_escape(out, body, at, c == 'x' ? 2 : c == 'u' ? 4 : 8);
  }
  // character names are not known here
  if (c == 'N') {
    return false;
  }
  out += '\\';
  return true;
}

}  // namespace

NumberToken scan_number(std::string_view text, bool may_be_float) {
  NumberToken token;
  if (text.empty() || !is_digit(text[0])) {
    return token;
  }
  if (const std::size_t length = may_be_float ? float_length(text) : 0; length > 0) {
    token.length = length;
    token.is_float = true;
    token.real = std::strtod(without_underscores(text.substr(0, length)).c_str(), nullptr);
    return token;
  }
  if (const int base = prefix_base(text); base != 10) {
    const std::size_t begin = text.size() > 2 && text[2] == '_' ? 3 : 2;
    const std::size_t end = skip_digits(text, begin, base);
    if (end > begin) {
      token.length = end;
      token.too_big = !accumulate(text.substr(begin, end - begin), base, token.integer);
      return token;
    }
  }
  token.length = skip_digits(text, 0, text[0] == '0' ? 1 : 10);
  token.too_big = !accumulate(text.substr(0, token.length), 10, token.integer);
  return token;
}

std::optional<Int> parse_int(std::string_view raw, int base) {
  const std::string ascii = ascii_digits(strip_space(raw));
  std::string_view text = ascii;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const int prefix = prefix_base(text);
  if (prefix != 10 && (base == prefix || base == 0)) {
    text.remove_prefix(2);
    if (text.starts_with('_')) {
      text.remove_prefix(1);
    }
    base = prefix;
  }
  if (base == 0) {
    base = 10;
  }
  Int value = 0;
  if (text.empty() || skip_digits(text, 0, base) != text.size() || !accumulate(text, base, value)) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<double> parse_float(std::string_view raw) {
  const std::string text = ascii_digits(strip_space(raw));
  std::string_view body = text;
  if (body.starts_with('-') || body.starts_with('+')) {
    body.remove_prefix(1);
  }
  std::string word(body);
  for (char& c : word) {
    c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  const bool is_word = word == "inf" || word == "infinity" || word == "nan";
  if (!is_word) {
    std::string_view rest = body;
    if (rest.find_first_not_of("0123456789._eE+-") != std::string_view::npos) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] != '_') {
        continue;
      }
      if (i == 0 || i + 1 == rest.size() || !is_digit(rest[i - 1]) || !is_digit(rest[i + 1])) {
        return std::nullopt;
      }
    }
  }
  const std::string plain = without_underscores(text);
  if (plain.empty()) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> unescape_string(std::string_view body) {
  std::string out;
  out.reserve(body.size());
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      out += body[at++];
      continue;
    }
    if (++at >= body.size() || !append_escape(out, body, at)) {
      return std::nullopt;
    }
  }
  return out;
}

std::string int_to_string(Int value) {
  if (value == 0) {
    return "0";
  }
  const bool negative = value < 0;
  std::string digits;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  if (negative) {
    digits += '-';
  }
  return {digits.rbegin(), digits.rend()};
}

std::string float_repr(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view scientific(buffer.data(),
                                    static_cast<std::size_t>(result.ptr - buffer.data()));
  const std::size_t e = scientific.find('e');
  const int exponent = std::atoi(std::string(scientific.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    return std::string(scientific);
  }
  std::string out(value < 0 || std::signbit(value) ? "-" : "");
  std::string digits;
  for (const char c : scientific.substr(0, e)) {
    if (is_digit(c)) {
      digits += c;
    }
  }
  if (exponent < 0) {
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return out + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace headrace::jinja
