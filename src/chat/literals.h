// Reading and writing the literals of Python: numbers, string escapes, the shortest text of a
// float. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "chat/value.h"

namespace headrace::jinja {

struct NumberToken {
  std::size_t length = 0;  // 0: no number here
  bool is_float = false;
  bool too_big = false;
  Int integer = 0;
  double real = 0;
};

// The number literal that text begins with, as Jinja's lexer cuts it.
NumberToken scan_number(std::string_view text, bool may_be_float);

// What int(text, base) and float(text) accept; nothing where they raise ValueError.
std::optional<Int> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// The body of a string literal with its escapes resolved; nothing for an invalid one.
std::optional<std::string> unescape_string(std::string_view body);

std::string int_to_string(Int value);
std::string float_repr(double value);

}  // namespace headrace::jinja
