#include "chat/format_spec.h"

#include <cmath>

#include "base/utf8.h"
#include "chat/format_value.h"
#include "chat/literals.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

constexpr int kMaxWidth = 1 << 20;

struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  int width = 0;
  char grouping = '\0';
  int precision = -1;
  char type = '\0';
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

int read_number(std::string_view text, std::size_t& at) {
  int value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > kMaxWidth) {
      fail_budget("a format is too wide");
    }
  }
  return value;
}

Spec parse(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  const std::size_t first = text.empty() ? 0 : char_at(text, 0).end;
  if (first < text.size() && first > 0 && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (is_align(peek())) {
    spec.align = text[at++];
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') {
    spec.sign = text[at++];
  }
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    ++at;
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = read_number(text, at);
  if (peek() == ',' || peek() == '_') {
    spec.grouping = text[at++];
  }
  if (peek() == '.') {
    const std::size_t begin = ++at;
    spec.precision = read_number(text, at);
    if (at == begin) {
      fail("Format specifier missing precision");
    }
    if (spec.precision > 500) {
      fail_budget("a format is too precise");
    }
  }
  if (at < text.size()) {
    spec.type = text[at++];
  }
  if (at < text.size()) {
    fail("Invalid format specifier '{}'", text);
  }
  return spec;
}

void add_fill(TextBuilder& out, const Spec& spec, std::size_t count, bool trusted) {
  for (std::size_t i = 0; i < count; ++i) {
    out.add(spec.fill, trusted);
  }
}

Text aligned(Interpreter& in,
             const Spec& spec,
             const Text& head,
             const Text& body,
             char align,
             bool trusted) {
  const std::size_t size = count_chars(head.view()) + count_chars(body.view());
  const auto width = static_cast<std::size_t>(spec.width);
  const std::size_t room = size < width ? width - size : 0;
  if (spec.align != '\0') {
    align = spec.align;
  }
  const std::size_t left = align == '>' ? room : align == '^' ? room / 2 : 0;
  TextBuilder out(in.budget());
  add_fill(out, spec, left, trusted);
  out.add(head);
  if (align == '=') {
    add_fill(out, spec, room, trusted);
  }
  out.add(body);
  if (align == '<' || align == '^') {
    add_fill(out, spec, room - left, trusted);
  }
  return out.take();
}

std::string grouped(const std::string& number, char separator, std::size_t every) {
  const std::size_t end = std::min(number.find_first_of(".e%"), number.size());
  std::string out;
  for (std::size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % every == 0) {
      out += separator;
    }
    out += number[i];
  }
  return out + number.substr(end);
}

std::string float_digits(double value, const Spec& spec) {
  if (spec.type == '\0' && spec.precision < 0) {
    return float_repr(value);
  }
  if (spec.type == '%') {
    return format_double(value * 100, 'f', spec.precision < 0 ? 6 : spec.precision, false) + "%";
  }
  char type = spec.type == '\0' || spec.type == 'n' ? 'g' : spec.type;
  if (std::string_view("eEfFgG").find(type) == std::string_view::npos) {
    fail("Unknown format code '{}' for object of type 'float'", type);
  }
  std::string digits =
      format_double(value, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
  if (spec.type == '\0' && digits.find_first_of(".enif") == std::string::npos) {
    digits += ".0";
  }
  return digits;
}

int base_of(char type) {
  switch (type) {
    case 'b':
      return 2;
    case 'o':
      return 8;
    case 'x':
    case 'X':
      return 16;
    default:
      return 10;
  }
}

// A number's sign, prefix (0x) and digits with their grouping.
struct Number {
  bool negative = false;
  std::string prefix;
  std::string digits;
};

Number float_number(double value, const Spec& spec) {
  Number number;
  number.digits = float_digits(value, spec);
  if (number.digits.starts_with('-')) {
    number.negative = true;
    number.digits.erase(0, 1);
  }
  if (spec.grouping != '\0') {
    number.digits = grouped(number.digits, spec.grouping, 3);
  }
  return number;
}

Number int_number(Int value, const Spec& spec) {
  if (spec.precision >= 0) {
    fail("Precision not allowed in integer format specifier");
  }
  if (std::string_view("bdoxXn").find(spec.type) == std::string_view::npos && spec.type != '\0') {
    fail("Unknown format code '{}' for object of type 'int'", spec.type);
  }
  const int base = base_of(spec.type);
  Number number;
  number.negative = value < 0;
  number.digits = int_in_base(value, base, spec.type == 'X');
  if (spec.grouping != '\0') {
    number.digits = grouped(number.digits, spec.grouping, base == 10 ? 3 : 4);
  }
  if (spec.alternate && base != 10) {
    number.prefix = std::string("0") + spec.type;
  }
  return number;
}

std::string_view sign_of(bool negative, char wanted) {
  if (negative) {
    return "-";
  }
  if (wanted == '+') {
    return "+";
  }
  return wanted == ' ' ? " " : "";
}

Text format_number(Interpreter& in, const Value& value, const Spec& spec, bool trusted) {
  const auto whole = value.as_int();
  const bool float_code = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  const bool as_float = !whole || float_code;
  Number number = as_float ? float_number(to_double(value), spec) : int_number(*whole, spec);
  number.prefix.insert(0, sign_of(number.negative, spec.sign));
  return aligned(in, spec, Text(number.prefix, true), Text(number.digits, true), '>', trusted);
}

}  // namespace

Text format_with_spec(Interpreter& in, const Value& value, const Text& spec_text) {
  if (spec_text.empty()) {
    return in.str(value);
  }
  const bool trusted = spec_text.trusted_at(0);
  const Spec spec = parse(spec_text.view());
  if (const Text* text = value.as_text()) {
    if (spec.type != '\0' && spec.type != 's') {
      fail("Unknown format code '{}' for object of type 'str'", spec.type);
    }
    if (spec.align == '=' && spec.fill != "0") {
      fail("'=' alignment not allowed in string format specifier");
    }
    Spec plain = spec;
    if (plain.align == '=') {
      plain.align = '<';
    }
    Text shown = *text;
    if (spec.precision >= 0) {
      shown = text->sub(0, offset_of_char(text->view(), static_cast<std::size_t>(spec.precision)));
    }
    return aligned(in, plain, Text(), shown, '<', trusted);
  }
  if (!value.as_int() && value.get<double>() == nullptr) {
    fail("unsupported format string passed to {}.__format__", type_name(value));
  }
  return format_number(in, value, spec, trusted);
}

}  // namespace headrace::jinja
