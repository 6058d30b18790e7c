#include "base/json_text.h"

#include <boost/json.hpp>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace headrace {
namespace {

namespace json = boost::json;

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
}

void append_text(std::string& out, std::string_view text) {
  out += '"';
  if (find_invalid_utf8(text) == std::string_view::npos) {
    append_escaped(out, text);
  } else {
    append_escaped(out, replace_invalid_utf8(text));
  }
  out += '"';
}

void append_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  const std::size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", number);
  if (out.find_first_of(".e", begin) == std::string::npos) {
    out += ".0";  // a reader that looks at the form gets a real number again
  }
}

void append_value(std::string& out, const json::value& value);

void append_object(std::string& out, const json::object& object) {
  char before = '{';
  for (const auto& member : object) {
    out += std::exchange(before, ',');
    append_text(out, {member.key().data(), member.key().size()});
    out += ':';
    append_value(out, member.value());
  }
  out += object.empty() ? "{}" : "}";
}

void append_array(std::string& out, const json::array& array) {
  char before = '[';
  for (const json::value& item : array) {
    out += std::exchange(before, ',');
    append_value(out, item);
  }
  out += array.empty() ? "[]" : "]";
}

void append_value(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      out += "null";
      return;
    case json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case json::kind::int64:
      fmt::format_to(std::back_inserter(out), "{}", value.get_int64());
      return;
    case json::kind::uint64:
      fmt::format_to(std::back_inserter(out), "{}", value.get_uint64());
      return;
    case json::kind::double_:
      append_double(out, value.get_double());
      return;
    case json::kind::string:
      append_text(out, {value.get_string().data(), value.get_string().size()});
      return;
    case json::kind::array:
      append_array(out, value.get_array());
      return;
    case json::kind::object:
      append_object(out, value.get_object());
      return;
  }
}

}  // namespace

std::string json_text(const json::value& value) {
  std::string out;
  append_value(out, value);
  return out;
}

std::string json_text(const json::object& object) {
  std::string out;
  append_object(out, object);
  return out;
}

std::string json_text(const json::array& array) {
  std::string out;
  append_array(out, array);
  return out;
}

std::string json_quoted(std::string_view text) {
  std::string out;
  append_text(out, text);
  return out;
}

}  // namespace headrace
