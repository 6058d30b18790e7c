// Cuts a template's source into tokens as Jinja does with trim_blocks, lstrip_blocks and without a
// trailing newline: tag whitespace control, raw blocks, comments, balanced braces. Pure; a bad
// source throws TemplateFailure with its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/value.h"

namespace headrace::jinja {

enum class TokenType {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;  // data, name, string (unescaped), operator
  Int integer = 0;
  double real = 0;

  bool is_op(std::string_view op) const { return type == TokenType::kOperator && text == op; }
  bool is_name(std::string_view name) const { return type == TokenType::kName && text == name; }
  std::string describe() const;
};

// Ends with one kEnd token.
std::vector<Token> tokenize(std::string_view source);

}  // namespace headrace::jinja
