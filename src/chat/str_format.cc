#include "chat/str_format.h"

#include <algorithm>

#include "base/utf8.h"
#include "chat/format_spec.h"
#include "chat/format_value.h"
#include "chat/literals.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

class FieldFormatter {
 public:
  FieldFormatter(Interpreter& in, const CallArgs& args) : in_(in), args_(args) {}

  Text run(const Text& format, int depth) {
    if (depth > 2) {
      fail("Max string recursion exceeded");
    }
    TextBuilder out(in_.budget());
    const std::string_view view = format.view();
    for (std::size_t at = 0; at < view.size();) {
      const std::size_t brace = std::min(view.find_first_of("{}", at), view.size());
      if (brace > at) {
        out.add(format.sub(at, brace));
      }
      if (brace == view.size()) {
        break;
      }
      if (brace + 1 < view.size() && view[brace + 1] == view[brace]) {
        out.add(format.sub(brace, brace + 1));
        at = brace + 2;
      } else if (view[brace] == '}') {
        fail("Single '}}' encountered in format string");
      } else {
        const std::size_t end = field_end(view, brace + 1);
        out.add(field(format.sub(brace + 1, end), depth));
        at = end + 1;
      }
    }
    return out.take();
  }

 private:
  static std::size_t field_end(std::string_view view, std::size_t at) {
    int level = 1;
    for (; at < view.size(); ++at) {
      if (view[at] == '{') {
        ++level;
      }
      if (view[at] == '}' && --level == 0) {
        return at;
      }
    }
    fail("expected '}}' before end of string");
  }

  Text field(const Text& body, int depth) {
    const std::string_view view = body.view();
    // A subscript may hold any character but its closing bracket.
    std::size_t name_end = 0;
    bool in_brackets = false;
    for (; name_end < view.size(); ++name_end) {
      if (view[name_end] == '[') {
        in_brackets = true;
      }
      if (view[name_end] == ']') {
        in_brackets = false;
      }
      if (!in_brackets && (view[name_end] == '!' || view[name_end] == ':')) {
        break;
      }
    }
    Value value = lookup(body.sub(0, name_end));
    std::size_t at = name_end;
    if (at < view.size() && view[at] == '!') {
      if (at + 1 >= view.size()) {
        fail("end of string while looking for conversion specifier");
      }
      value = converted(value, view[at + 1]);
      at += 2;
      if (at < view.size() && view[at] != ':') {
        fail("expected ':' after conversion specifier");
      }
    }
    const Text spec = at < view.size() ? run(body.sub(at + 1, view.size()), depth + 1) : Text();
    return format_with_spec(in_, value, spec);
  }

  Value converted(const Value& value, char conversion) {
    if (conversion == 's') {
      return Value::text(in_.str(value));
    }
    if (conversion != 'r') {
      fail("Unknown conversion specifier {}", conversion);
    }
    TextBuilder out(in_.budget());
    append_repr(out, value);
    return Value::text(out.take());
  }

  static bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  Value argument(std::string_view name) {
    if (name.empty() || all_digits(name)) {
      if (name.empty() == (numbering_ == Numbering::kManual) && numbering_ != Numbering::kNone) {
        fail("cannot switch between manual field specification and automatic field numbering");
      }
      numbering_ = name.empty() ? Numbering::kAutomatic : Numbering::kManual;
      const auto index =
          name.empty() ? static_cast<Int>(next_++) : parse_int(name, 10).value_or(-1);
      if (index < 0 || index >= static_cast<Int>(args_.positional.size())) {
        fail("Replacement index {} out of range for positional args tuple", int_to_string(index));
      }
      return args_.positional[static_cast<std::size_t>(index)];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) {
        return value;
      }
    }
    fail("the format's field '{}' is not there", name);
  }

  Value lookup(const Text& path) {
    const std::string_view view = path.view();
    std::size_t at = std::min(view.find_first_of(".["), view.size());
    Value value = argument(view.substr(0, at));
    while (at < view.size()) {
      if (view[at] == '.') {
        const std::size_t end = std::min(view.find_first_of(".[", at + 1), view.size());
        value = in_.attribute(value, path.sub(at + 1, end));
        at = end;
      } else {
        const std::size_t close = view.find(']', at);
        if (close == std::string_view::npos) {
          fail("Missing ']' in format string");
        }
        const std::string_view key = view.substr(at + 1, close - at - 1);
        value = in_.item(value,
                         all_digits(key) ? Value::integer(parse_int(key, 10).value_or(0))
                                         : Value::text(path.sub(at + 1, close)));
        at = close + 1;
      }
    }
    return value;
  }

  enum class Numbering { kNone, kAutomatic, kManual };
  Interpreter& in_;
  const CallArgs& args_;
  Numbering numbering_ = Numbering::kNone;
  std::size_t next_ = 0;
};

}  // namespace

Text str_format(Interpreter& in, const Text& format, const CallArgs& args) {
  return FieldFormatter(in, args).run(format, 0);
}

}  // namespace headrace::jinja
