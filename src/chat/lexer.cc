#include "chat/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "chat/literals.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') {
      ++i;
    }
  }
  // one newline at the end is not kept
  if (!out.empty() && out.back() == '\n') {
    out.pop_back();
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source)
      : source_storage_(std::move(source)), source_(source_storage_) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) {
      next_part();
    }
    push(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void syntax_error(std::string message) const {
    throw TemplateFailure(TemplateFailure::Kind::kSyntax, std::move(message), line_);
  }

  bool at(std::string_view what) const { return source_.substr(pos_).starts_with(what); }
  bool at(std::size_t pos, std::string_view what) const {
    return source_.substr(pos).starts_with(what);
  }

  void push(TokenType type, std::string_view text) {
    Token token;
    token.type = type;
    token.line = line_;
    token.text = text;
    tokens_.push_back(std::move(token));
  }

  void move_to(std::size_t pos) {
    line_ += static_cast<int>(std::count(source_.begin() + pos_, source_.begin() + pos, '\n'));
    if (pos > pos_) {
      line_starting_ = source_[pos - 1] == '\n';
    }
    pos_ = pos;
  }

  // Text up to the next tag, then the tag.
  void next_part() {
    std::size_t open = pos_;
    while (true) {
      open = source_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= source_.size()) {
        push(TokenType::kData, source_.substr(pos_));
        move_to(source_.size());
        return;
      }
      const char kind = source_[open + 1];
      if (kind == '%' || kind == '{' || kind == '#') {
        break;
      }
      ++open;
    }
    const bool variable = source_[open + 1] == '{';
    push_data(open, sign_at(open + 2), !variable);
    move_to(open);
    if (source_[open + 1] == '#') {
      comment();
    } else if (const auto body = raw_begin(); !variable && body) {
      move_to(*body);
      raw();
    } else {
      tag(variable);
    }
  }

  char sign_at(std::size_t pos) const {
    return pos < source_.size() && (source_[pos] == '-' || source_[pos] == '+') ? source_[pos]
                                                                                : '\0';
  }

  // The data before a tag, without the white space its control takes away.
  void push_data(std::size_t end, char sign, bool may_lstrip) {
    std::string_view text = source_.substr(pos_, end - pos_);
    if (sign == '-') {
      text = text.substr(0, trimmed_end(text));
    } else if (sign != '+' && may_lstrip) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      const bool own_line = line_begin > 0 || line_starting_;
      if (own_line && skip_space(text, line_begin) == text.size()) {
        text = text.substr(0, line_begin);
      }
    }
    if (!text.empty()) {
      push(TokenType::kData, text);
    }
  }

  void comment() {
    const std::size_t begin = pos_ + 2 + (sign_at(pos_ + 2) != '\0' ? 1 : 0);
    const std::size_t close = source_.find("#}", begin);
    if (close == std::string_view::npos) {
      syntax_error("Missing end of comment tag");
    }
    const char sign = close > begin ? sign_at(close - 1) : '\0';
    move_to(after_close(close + 2, sign, true));
  }

  // Where the source goes on behind a closing tag.
  std::size_t after_close(std::size_t pos, char sign, bool trim_newline) const {
    if (sign == '-') {
      return skip_space(source_, pos);
    }
    if (sign != '+' && trim_newline && at(pos, "\n")) {
      return pos + 1;
    }
    return pos;
  }

  // Matches {%- name %} at pos; the offset behind it.
  std::optional<std::size_t> bare_tag(std::size_t pos, std::string_view name, bool is_begin) const {
    pos += 2;
    if (sign_at(pos) != '\0') {
      ++pos;
    }
    pos = skip_space(source_, pos);
    if (!at(pos, name)) {
      return std::nullopt;
    }
    pos = skip_space(source_, pos + name.size());
    const char sign = is_begin && at(pos, "+") ? '\0' : sign_at(pos);
    if (sign != '\0') {
      ++pos;
    }
    if (!at(pos, "%}")) {
      return std::nullopt;
    }
    return after_close(pos + 2, sign, !is_begin);
  }

  std::optional<std::size_t> raw_begin() const {
    return at("{%") ? bare_tag(pos_, "raw", true) : std::nullopt;
  }

  void raw() {
    for (std::size_t open = source_.find("{%", pos_); open != std::string_view::npos;
         open = source_.find("{%", open + 1)) {
      const auto end = bare_tag(open, "endraw", false);
      if (!end) {
        continue;
      }
      push_data(open, sign_at(open + 2), true);
      move_to(*end);
      return;
    }
    syntax_error("Missing end of raw directive");
  }

  void tag(bool variable) {
    push(variable ? TokenType::kVariableBegin : TokenType::kBlockBegin, "");
    move_to(pos_ + 2 + (sign_at(pos_ + 2) != '\0' ? 1 : 0));
    std::string balance;
    while (pos_ < source_.size()) {
      if (balance.empty() && tag_end(variable)) {
        return;
      }
      if (const std::size_t after = skip_space(source_, pos_); after != pos_) {
        move_to(after);
      } else if (!number() && !name() && !string()) {
        operator_token(balance);
      }
    }
  }

  bool tag_end(bool variable) {
    const std::string_view close = variable ? "}}" : "%}";
    const char sign = sign_at(pos_);
    const bool signed_end = sign == '-' || (sign == '+' && !variable);
    const std::size_t at_close = pos_ + (signed_end ? 1 : 0);
    if (!at(at_close, close)) {
      return false;
    }
    push(variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, "");
    move_to(after_close(at_close + 2, signed_end ? sign : '\0', !variable));
    return true;
  }

  bool number() {
    const bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';
    const NumberToken found = scan_number(source_.substr(pos_), !after_dot);
    if (found.length == 0) {
      return false;
    }
    if (found.too_big) {
      syntax_error("an integer is too big");
    }
    push(found.is_float ? TokenType::kFloat : TokenType::kInteger,
         source_.substr(pos_, found.length));
    tokens_.back().integer = found.integer;
    tokens_.back().real = found.real;
    move_to(pos_ + found.length);
    return true;
  }

  bool name() {
    std::size_t end = pos_;
    while (end < source_.size()) {
      const Char c = char_at(source_, end);
      if (c.code != '_' && !is_alnum(c.code)) {
        break;
      }
      end = c.end;
    }
    if (end == pos_) {
      return false;
    }
    push(TokenType::kName, source_.substr(pos_, end - pos_));
    move_to(end);
    return true;
  }

  bool string() {
    const char quote = source_[pos_];
    if (quote != '\'' && quote != '"') {
      return false;
    }
    std::size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) {
      syntax_error(fmt::format("unexpected char {}, a string without end", quote));
    }
    const auto value = unescape_string(source_.substr(pos_ + 1, end - pos_ - 1));
    if (!value) {
      syntax_error("a string has an invalid escape");
    }
    push(TokenType::kString, *value);
    move_to(end + 1);
    return true;
  }

  void operator_token(std::string& balance) {
    const auto* const op = std::find_if(
        kOperators.begin(), kOperators.end(), [this](std::string_view o) { return at(o); });
    if (op == kOperators.end()) {
      const Char c = char_at(source_, pos_);
      syntax_error(fmt::format("unexpected char '{}'", source_.substr(pos_, c.end - c.begin)));
    }
    const char c = op->front();
    if (c == '{' || c == '(' || c == '[') {
      balance += c == '{' ? '}' : c == '(' ? ')' : ']';
    } else if (c == '}' || c == ')' || c == ']') {
      if (balance.empty()) {
        syntax_error(fmt::format("unexpected '{}'", c));
      }
      if (balance.back() != c) {
        syntax_error(fmt::format("unexpected '{}', expected '{}'", c, balance.back()));
      }
      balance.pop_back();
    }
    push(TokenType::kOperator, *op);
    move_to(pos_ + op->size());
  }

  std::string source_storage_;
  std::string_view source_;
  std::size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string Token::describe() const {
  switch (type) {
    case TokenType::kData:
      return "template data / text";
    case TokenType::kVariableBegin:
      return "begin of print statement";
    case TokenType::kVariableEnd:
      return "end of print statement";
    case TokenType::kBlockBegin:
      return "begin of statement block";
    case TokenType::kBlockEnd:
      return "end of statement block";
    case TokenType::kEnd:
      return "end of template";
    case TokenType::kString:
      return "string";
    case TokenType::kInteger:
      return "integer";
    case TokenType::kFloat:
      return "float";
    case TokenType::kName:
    case TokenType::kOperator:
      break;
  }
  return text;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace headrace::jinja
