#include "chat/format_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "chat/literals.h"
#include "chat/objects.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

constexpr int kMaxReprDepth = 500;

std::string escaped_char(const Char& c, std::string_view raw, char quote) {
  switch (c.code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (c.code == static_cast<char32_t>(quote)) {
    return {'\\', quote};
  }
  if (is(CharClass::kPrintable, c.code)) {
    return std::string(raw);
  }
  const auto code = static_cast<std::uint32_t>(c.code);
  if (code < 0x100) {
    return fmt::format("\\x{:02x}", code);
  }
  if (code < 0x10000) {
    return fmt::format("\\u{:04x}", code);
  }
  return fmt::format("\\U{:08x}", code);
}

void append_text_repr(TextBuilder& out, const Text& text) {
  const std::string_view view = text.view();
  const bool has_single = view.find('\'') != std::string_view::npos;
  const bool has_double = view.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  if (text.markup()) {
    out.add("Markup(", false);
  }
  out.add({&quote, 1}, false);
  for (std::size_t at = 0; at < view.size();) {
    const Char c = char_at(view, at);
    out.add(escaped_char(c, view.substr(at, c.end - at), quote), text.trusted_at(at));
    at = c.end;
  }
  out.add({&quote, 1}, false);
  if (text.markup()) {
    out.add(")", false);
  }
}

void append_items(TextBuilder& out,
                  const Sequence& sequence,
                  std::string_view open,
                  std::string_view close,
                  int depth) {
  out.add(open, false);
  bool first = true;
  for (const Value& item : sequence.items) {
    if (!std::exchange(first, false)) {
      out.add(", ", false);
    }
    append_repr(out, item, depth + 1);
  }
  if (sequence.is_tuple() && sequence.items.size() == 1) {
    out.add(",", false);
  }
  out.add(close, false);
}

void append_sequence(TextBuilder& out, const Sequence& sequence, int depth) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      return append_items(out, sequence, "[", "]", depth);
    case SequenceKind::kTuple:
    case SequenceKind::kGroup:
      return append_items(out, sequence, "(", ")", depth);
    case SequenceKind::kKeys:
      return append_items(out, sequence, "dict_keys([", "])", depth);
    case SequenceKind::kValues:
      return append_items(out, sequence, "dict_values([", "])", depth);
    case SequenceKind::kItems:
      return append_items(out, sequence, "dict_items([", "])", depth);
    case SequenceKind::kGenerator:
      return out.add("<generator object>", true);
    case SequenceKind::kRange:
      break;
  }
  const auto& [start, stop, step] = sequence.range;
  const std::string tail = step == 1 ? ")" : ", " + int_to_string(step) + ")";
  out.add("range(" + int_to_string(start) + ", " + int_to_string(stop) + tail, true);
}

void append_dict(TextBuilder& out, const Dict& dict, int depth) {
  out.add("{", false);
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!std::exchange(first, false)) {
      out.add(", ", false);
    }
    append_repr(out, key, depth + 1);
    out.add(": ", false);
    append_repr(out, value, depth + 1);
  }
  out.add("}", false);
}

}  // namespace

void append_str(TextBuilder& out, const Value& value) {
  if (const Text* text = value.as_text()) {
    out.add(*text);
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

void append_repr(TextBuilder& out, const Value& value, int depth) {
  if (depth > kMaxReprDepth) {
    fail_budget("a value nests too deeply to be printed");
  }
  if (const Text* text = value.as_text()) {
    return append_text_repr(out, *text);
  }
  if (const Sequence* sequence = value.as_sequence()) {
    return append_sequence(out, *sequence, depth);
  }
  if (const Dict* dict = value.as_dict()) {
    return append_dict(out, *dict, depth);
  }
  if (const Object* object = value.as_object()) {
    if (const auto* ns = dynamic_cast<const NamespaceObject*>(object)) {
      out.add("<Namespace ", false);
      append_dict(out, ns->values(), depth + 1);
      return out.add(">", false);
    }
    return out.add(object->describe(), true);
  }
  if (value.is_none()) {
    return out.add("None", true);
  }
  if (value.is_undefined()) {
    return out.add("Undefined", true);
  }
  if (const auto* b = value.get<bool>()) {
    return out.add(*b ? "True" : "False", true);
  }
  if (const auto* i = value.get<Int>()) {
    return out.add(int_to_string(*i), true);
  }
  out.add(float_repr(*value.get<double>()), true);
}

std::string format_double(double value, char type, int precision, bool alternate) {
  const bool upper = type == 'E' || type == 'F' || type == 'G';
  if (std::isnan(value)) {
    return upper ? "NAN" : "nan";
  }
  if (std::isinf(value)) {
    return std::string(value < 0 ? "-" : "") + (upper ? "INF" : "inf");
  }
  const std::array<char, 6> spec = {'%',
                                    alternate ? '#' : '.',
                                    alternate ? '.' : '*',
                                    alternate ? '*' : type,
                                    alternate ? type : '\0',
                                    '\0'};
  const int size = std::snprintf(nullptr, 0, spec.data(), precision, value);
  std::string out(static_cast<std::size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(out.data(), out.size(), spec.data(), precision, value);
  out.pop_back();
  return out;
}

std::string int_in_base(Int value, int base, bool upper) {
  if (value == 0) {
    return "0";
  }
  std::string digits;
  for (; value != 0; value /= base) {
    const int digit = std::abs(static_cast<int>(value % base));
    digits += "0123456789abcdef"[digit];
  }
  std::reverse(digits.begin(), digits.end());
  if (upper) {
    for (char& c : digits) {
      c = static_cast<char>(c >= 'a' ? c - 32 : c);
    }
  }
  return digits;
}

}  // namespace headrace::jinja
