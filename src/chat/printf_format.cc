#include "chat/printf_format.h"

#include <cmath>

#include "base/utf8.h"
#include "chat/format_value.h"
#include "chat/interpreter.h"
#include "chat/literals.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

constexpr int kMaxWidth = 1 << 20;
constexpr int kMaxPrecision = 500;

struct Conversion {
  bool left = false;
  bool zero = false;
  bool plus = false;
  bool space = false;
  bool alternate = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

Int truncated(double d) {
  if (!std::isfinite(d)) {
    fail("cannot convert float {} to integer", float_repr(d));
  }
  if (std::abs(d) > 1e37) {
    fail_budget("an integer is too big");
  }
  return static_cast<Int>(d);
}

class Formatter {
 public:
  Formatter(Interpreter& in, const Text& format, const Value& arguments)
      : in_(in), format_(format), view_(format_.view()), arguments_(arguments), out_(in.budget()) {
    if (const Sequence* s = arguments.as_sequence(); s != nullptr && s->is_tuple()) {
      tuple_ = s;
    }
  }

  Text run() {
    while (at_ < view_.size()) {
      const std::size_t percent = view_.find('%', at_);
      const std::size_t end = percent == std::string_view::npos ? view_.size() : percent;
      if (end > at_) {
        out_.add(format_.sub(at_, end));
      }
      at_ = end;
      if (percent != std::string_view::npos) {
        conversion();
      }
    }
    check_all_used();
    return out_.take().with_markup(format_.markup());
  }

 private:
  void check_all_used() const {
    if (tuple_ != nullptr) {
      if (used_ < tuple_->items.size()) {
        fail("not all arguments converted during string formatting");
      }
      return;
    }
    const bool mapping =
        arguments_.as_dict() != nullptr || arguments_.is_undefined() ||
        (arguments_.as_sequence() != nullptr && arguments_.as_sequence()->indexable());
    if (used_ == 0 && !mapping) {
      fail("not all arguments converted during string formatting");
    }
  }

  const Value& next_argument() {
    if (tuple_ != nullptr) {
      if (used_ >= tuple_->items.size()) {
        fail("not enough arguments for format string");
      }
      return tuple_->items[used_++];
    }
    if (used_++ > 0) {
      fail("not enough arguments for format string");
    }
    return arguments_;
  }

  char peek() const {
    if (at_ >= view_.size()) {
      fail("incomplete format");
    }
    return view_[at_];
  }

  int number(int limit) {
    if (peek() == '*') {
      ++at_;
      const auto value = next_argument().as_int();
      if (!value) {
        fail("* wants int");
      }
      if (*value > limit || *value < -limit) {
        fail_budget("a format is too wide");
      }
      return static_cast<int>(*value);
    }
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (view_[at_++] - '0');
      if (value > limit) {
        fail_budget("a format is too wide");
      }
    }
    return value;
  }

  void flags(Conversion& c) {
    for (;; ++at_) {
      switch (peek()) {
        case '-':
          c.left = true;
          break;
        case '0':
          c.zero = true;
          break;
        case '+':
          c.plus = true;
          break;
        case ' ':
          c.space = true;
          break;
        case '#':
          c.alternate = true;
          break;
        default:
          return;
      }
    }
  }

  void conversion() {
    const std::size_t begin = at_++;
    trusted_ = format_.trusted_at(begin);
    const Value* keyed = nullptr;
    if (peek() == '(') {
      keyed = key();
    }
    Conversion c;
    flags(c);
    c.width = number(kMaxWidth);
    if (c.width < 0) {
      c.left = true;
      c.width = -c.width;
    }
    if (peek() == '.') {
      ++at_;
      c.precision = std::max(0, number(kMaxPrecision));
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') {
      ++at_;
    }
    c.type = peek();
    ++at_;
    if (c.type == '%') {
      return out_.add("%", trusted_);
    }
    emit(c, keyed != nullptr ? *keyed : next_argument());
  }

  const Value* key() {
    int level = 1;
    const std::size_t begin = ++at_;
    while (level > 0) {
      const char c = peek();
      level += c == '(' ? 1 : c == ')' ? -1 : 0;
      ++at_;
    }
    const Dict* dict = arguments_.as_dict();
    if (dict == nullptr) {
      fail("format requires a mapping");
    }
    const std::string_view name = view_.substr(begin, at_ - 1 - begin);
    const Value* value = dict->find(name);
    if (value == nullptr) {
      fail("the format's key '{}' is not there", name);
    }
    used_ = 1;
    return value;
  }

  void emit(const Conversion& c, const Value& value) {
    switch (c.type) {
      case 's':
        return emit_text(c, in_.str(value));
      case 'r': {
        TextBuilder repr(in_.budget());
        append_repr(repr, value);
        return emit_text(c, repr.take());
      }
      case 'c':
        return emit_char(c, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return emit_int(c, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return emit_float(c, value);
      default:
        fail("unsupported format character '{}'", c.type);
    }
  }

  void pad(std::size_t chars, int width) {
    const auto wanted = static_cast<std::size_t>(width);
    if (chars < wanted) {
      out_.add(std::string(wanted - chars, ' '), trusted_);
    }
  }

  void emit_text(const Conversion& c, const Text& text) {
    Text shown = text;
    if (c.precision >= 0) {
      shown = text.sub(0, offset_of_char(text.view(), static_cast<std::size_t>(c.precision)));
    }
    const std::size_t chars = c.width > 0 ? count_chars(shown.view()) : 0;
    if (!c.left) {
      pad(chars, c.width);
    }
    out_.add(shown);
    if (c.left) {
      pad(chars, c.width);
    }
  }

  void emit_char(const Conversion& c, const Value& value) {
    if (const Text* text = value.as_text(); text != nullptr && count_chars(text->view()) == 1) {
      return emit_text(c, *text);
    }
    const auto* code = value.get<Int>();
    if (code == nullptr) {
      fail("%c requires int or char");
    }
    if (*code < 0 || *code > 0x10FFFF) {
      fail("%c arg not in range(0x110000)");
    }
    std::string bytes;
    append_utf8(bytes, static_cast<char32_t>(*code));
    emit_text(c, Text(bytes, false));  // who chose the number is not known
  }

  void emit_int(const Conversion& c, const Value& value) {
    require_defined(value);
    const bool decimal = c.type == 'd' || c.type == 'i' || c.type == 'u';
    auto whole = value.as_int();
    if (const auto* d = value.get<double>(); d != nullptr && decimal) {
      whole = truncated(*d);
    }
    if (!whole) {
      fail("%{} format: a number is required, not {}", c.type, type_name(value));
    }
    const int base = decimal ? 10 : c.type == 'o' ? 8 : 16;
    std::string digits = int_in_base(*whole, base, c.type == 'X');
    if (c.precision > 0 && digits.size() < static_cast<std::size_t>(c.precision)) {
      digits.insert(0, static_cast<std::size_t>(c.precision) - digits.size(), '0');
    }
    const std::string_view prefix = !c.alternate || decimal ? ""
                                    : c.type == 'o'         ? "0o"
                                    : c.type == 'x'         ? "0x"
                                                            : "0X";
    emit_number(c, *whole < 0, prefix, digits);
  }

  void emit_float(const Conversion& c, const Value& value) {
    require_defined(value);
    const double number_value = to_double(value);
    const int precision = c.precision < 0 ? 6 : c.precision;
    std::string digits = format_double(number_value, c.type, precision, c.alternate);
    const bool negative = digits.starts_with('-');
    if (negative) {
      digits.erase(0, 1);
    }
    emit_number(c, negative, "", digits);
  }

  void emit_number(const Conversion& c,
                   bool negative,
                   std::string_view prefix,
                   const std::string& digits) {
    std::string head = negative ? "-" : c.plus ? "+" : c.space ? " " : "";
    head += prefix;
    const std::size_t size = head.size() + digits.size();
    if (c.zero && !c.left) {
      const auto width = static_cast<std::size_t>(c.width);
      const std::string zeros(size < width ? width - size : 0, '0');
      return out_.add(head + zeros + digits, true);
    }
    if (!c.left) {
      pad(size, c.width);
    }
    out_.add(head + digits, true);
    if (c.left) {
      pad(size, c.width);
    }
  }

  Interpreter& in_;
  Text format_;
  std::string_view view_;
  const Value& arguments_;
  const Sequence* tuple_ = nullptr;
  TextBuilder out_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  bool trusted_ = true;
};

}  // namespace

Text printf_format(Interpreter& in, const Text& format, const Value& arguments) {
  return Formatter(in, format, arguments).run();
}

}  // namespace headrace::jinja
