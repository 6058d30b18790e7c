#include "chat/json.h"

#include <algorithm>
#include <cmath>

#include "chat/literals.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

constexpr int kMaxDepth = 300;

Value convert(const boost::json::value& json, int depth) {
  if (depth > kMaxDepth) {
    fail_budget("the input nests deeper than {} levels", kMaxDepth);
  }
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value::none();
    case boost::json::kind::bool_:
      return Value::boolean(json.get_bool());
    case boost::json::kind::int64:
      return Value::integer(json.get_int64());
    case boost::json::kind::uint64:
      return Value::integer(json.get_uint64());
    case boost::json::kind::double_:
      return Value::real(json.get_double());
    case boost::json::kind::string:
      return Value::text(Text(json.get_string(), false));
    case boost::json::kind::array: {
      std::vector<Value> items;
      items.reserve(json.get_array().size());
      for (const auto& item : json.get_array()) {
        items.push_back(convert(item, depth + 1));
      }
      return make_list(std::move(items));
    }
    case boost::json::kind::object:
      break;
  }
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : json.get_object()) {
    dict->set(Value::text(Text(key, false)), convert(value, depth + 1));
  }
  return Value::dict(std::move(dict));
}

std::string unicode_escape(char32_t code) {
  const auto c = static_cast<std::uint32_t>(code);
  if (c < 0x10000) {
    return fmt::format("\\u{:04x}", c);
  }
  return fmt::format(
      "\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
}

// Empty: the character stands for itself.
std::string json_escape(char32_t code, bool ensure_ascii) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      break;
  }
  if (code < 0x20 || (ensure_ascii && code > 0x7E)) {
    return unicode_escape(code);
  }
  return {};
}

std::string float_json(double d) {
  if (std::isnan(d)) {
    return "NaN";
  }
  if (std::isinf(d)) {
    return d < 0 ? "-Infinity" : "Infinity";
  }
  return float_repr(d);
}

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : out_(budget), style_(style) {}

  Text run(const Value& value) {
    write(value, 0);
    return out_.take();
  }

 private:
  void write(const Value& value, int level) {
    if (level > kMaxDepth * 2) {
      fail_budget("a value nests too deeply for JSON");
    }
    if (const Text* text = value.as_text()) {
      return string(*text);
    }
    if (value.is_none() || value.as_int() || value.get<double>() != nullptr) {
      return out_.add(scalar(value), true);
    }
    if (const Dict* dict = value.as_dict()) {
      return object(*dict, level);
    }
    const Sequence* sequence = value.as_sequence();
    if (sequence == nullptr || !(sequence->is_tuple() || sequence->kind == SequenceKind::kList)) {
      fail("Object of type {} is not JSON serializable", type_name(value));
    }
    array(*sequence, level);
  }

  static std::string scalar(const Value& value) {
    if (value.is_none()) {
      return "null";
    }
    if (const auto* b = value.get<bool>()) {
      return *b ? "true" : "false";
    }
    if (const auto* i = value.get<Int>()) {
      return int_to_string(*i);
    }
    return float_json(*value.get<double>());
  }

  void string(const Text& text) {
    const std::string_view view = text.view();
    out_.add("\"", false);
    std::size_t plain = 0;
    for (std::size_t at = 0; at < view.size();) {
      const Char c = char_at(view, at);
      const std::string escape = json_escape(c.code, style_.ensure_ascii);
      if (!escape.empty()) {
        if (plain < at) {
          out_.add(text.sub(plain, at));
        }
        out_.add(escape, text.trusted_at(at));
        plain = c.end;
      }
      at = c.end;
    }
    if (plain < view.size()) {
      out_.add(text.sub(plain, view.size()));
    }
    out_.add("\"", false);
  }

  void newline(int level) {
    if (!style_.indented) {
      return;
    }
    out_.add("\n", false);
    for (int i = 0; i < level; ++i) {
      out_.add(style_.indent);
    }
  }

  void array(const Sequence& sequence, int level) {
    if (sequence.items.empty()) {
      return out_.add("[]", false);
    }
    out_.add("[", false);
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!std::exchange(first, false)) {
        out_.add(style_.item_separator);
      }
      newline(level + 1);
      write(item, level + 1);
    }
    newline(level);
    out_.add("]", false);
  }

  void key(const Value& key) {
    if (const Text* text = key.as_text()) {
      return string(*text);
    }
    if (!key.is_none() && !key.as_int() && key.get<double>() == nullptr) {
      fail("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
    out_.add("\"" + scalar(key) + "\"", false);
  }

  void object(const Dict& dict, int level) {
    if (dict.size() == 0) {
      return out_.add("{}", false);
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries()) {
      entries.push_back(&entry);
    }
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
        return less_than(a->first, b->first);
      });
    }
    out_.add("{", false);
    bool first = true;
    for (const auto* entry : entries) {
      if (!std::exchange(first, false)) {
        out_.add(style_.item_separator);
      }
      newline(level + 1);
      key(entry->first);
      out_.add(style_.key_separator);
      write(entry->second, level + 1);
    }
    newline(level);
    out_.add("}", false);
  }

  TextBuilder out_;
  const JsonStyle& style_;
};

}  // namespace

Value from_json(const boost::json::value& json) { return convert(json, 0); }

Text to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  return Writer(budget, style).run(value);
}

}  // namespace headrace::jinja
