// Filters that make text of text.
#include <array>

#include "chat/filters.h"
#include "chat/html.h"
#include "chat/operators.h"
#include "chat/printf_format.h"
#include "chat/strings.h"

namespace headrace::jinja {
namespace {

void no_arguments(CallArgs& args, std::string_view filter) { ArgReader(args, filter, {}); }

Value upper(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "upper");
  return Value::text(map_case(in.budget(), in.str(input), CaseMap::kUpper));
}

Value lower(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "lower");
  return Value::text(map_case(in.budget(), in.str(input), CaseMap::kLower));
}

Value capitalized(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "capitalize");
  return Value::text(capitalize(in.budget(), in.str(input)));
}

// Words begin at the start and behind white space and - ( { [ <, unlike those of str.title.
Value title(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "title");
  const Text text = in.str(input);
  const std::string_view view = text.view();
  const auto is_break = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is(CharClass::kSpace, c);
  };
  TextBuilder out(in.budget());
  for (std::size_t at = 0; at < view.size();) {
    const bool breaks = is_break(char_at(view, at).code);
    std::size_t end = at;
    while (end < view.size() && is_break(char_at(view, end).code) == breaks) {
      end = char_at(view, end).end;
    }
    const std::size_t first = char_at(view, at).end;
    out.add(map_case(in.budget(), text.sub(at, first), CaseMap::kUpper));
    out.add(map_case(in.budget(), text.sub(first, end), CaseMap::kLower));
    at = end;
  }
  return Value::text(out.take());
}

Value trim(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "trim", {"chars"});
  return Value::text(strip(in.str(input), reader.text(0), Sides::kBoth));
}

Value replaced(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "replace", {"old", "new", "count"}, 2);
  const Value count = reader.value(2, Value::none());
  const std::int64_t limit =
      count.is_none() ? -1 : static_cast<std::int64_t>(reader.integer(2, -1));
  return Value::text(replace(in.budget(),
                             in.str(input).with_markup(false),
                             in.str(*reader.get(0)),
                             in.str(*reader.get(1)),
                             limit));
}

Value center(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "center", {"width"});
  const auto width = static_cast<std::int64_t>(reader.integer(0, 80));
  return Value::text(pad(in.budget(), in.str(input), width, Text::literal(" "), Sides::kBoth));
}

Value format(Interpreter& in, const Value& input, CallArgs& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  if (args.named.empty()) {
    return Value::text(printf_format(in, in.str(input), make_tuple(args.positional)));
  }
  auto dict = std::make_shared<Dict>();
  for (const auto& [name, value] : args.named) {
    dict->set(in.make_text(name, false), value);
  }
  return Value::text(printf_format(in, in.str(input), Value::dict(std::move(dict))));
}

Value string(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "string");
  return Value::text(in.str(input));
}

Value safe(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "safe");
  return Value::text(in.str(input).with_markup(true));
}

Value escape(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "escape");
  return Value::text(escape_html(in.budget(), in.str(input)).with_markup(true));
}

Value force_escape(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "forceescape");
  return Value::text(escape_html(in.budget(), in.str(input).with_markup(false)).with_markup(true));
}

Value striptags(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "striptags");
  return Value::text(strip_tags(in.budget(), in.str(input)));
}

bool stays_in_url(unsigned char c, bool query) {
  const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return alnum || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query);
}

Text quoted(Interpreter& in, const Value& value, bool query) {
  const Text text = in.str(value);
  TextBuilder out(in.budget());
  text.for_each_run([&](std::string_view run, bool trusted) {
    std::string quoted_run;
    for (const char raw : run) {
      const auto c = static_cast<unsigned char>(raw);
      if (stays_in_url(c, query)) {
        quoted_run += raw;
      } else if (c == ' ' && query) {
        quoted_run += '+';
      } else {
        quoted_run += fmt::format("%{:02X}", c);
      }
    }
    out.add(quoted_run, trusted);
  });
  return out.take();
}

Value urlencode(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "urlencode");
  const Dict* dict = input.as_dict();
  if (dict == nullptr && input.as_sequence() == nullptr) {
    return Value::text(quoted(in, input, false));
  }
  std::vector<Text> parts;
  const auto add = [&](const Value& key, const Value& value) {
    const Text left = quoted(in, key, true).append(Text("=", true), in.budget());
    parts.push_back(left.append(quoted(in, value, true), in.budget()));
  };
  if (dict != nullptr) {
    for (const auto& [key, value] : dict->entries()) {
      add(key, value);
    }
  } else {
    for (const Value& pair : in.iterate(input)) {
      const std::vector<Value> two = in.iterate(pair);
      if (two.size() != 2) {
        fail("urlencode takes pairs");
      }
      add(two[0], two[1]);
    }
  }
  return Value::text(join(in.budget(), Text("&", true), parts));
}

Value xmlattr(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "xmlattr", {"autospace"});
  const Dict* dict = input.as_dict();
  if (dict == nullptr) {
    fail("xmlattr takes a mapping, not {}", type_name(input));
  }
  TextBuilder out(in.budget());
  bool first = true;
  for (const auto& [key, value] : dict->entries()) {
    if (value.is_none() || value.is_undefined()) {
      continue;
    }
    const Text name = in.str(key);
    if (name.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail("Invalid character in attribute name: '{}'", name.view());
    }
    if (!std::exchange(first, false) || reader.flag(0, true)) {
      out.add(" ", true);
    }
    out.add(escape_html(in.budget(), name));
    out.add("=\"", true);
    out.add(escape_html(in.budget(), in.str(value)));
    out.add("\"", true);
  }
  return Value::text(out.take());
}

constexpr std::array kFilters = {
    FilterEntry{"upper", upper},
    FilterEntry{"lower", lower},
    FilterEntry{"capitalize", capitalized},
    FilterEntry{"title", title},
    FilterEntry{"trim", trim},
    FilterEntry{"replace", replaced},
    FilterEntry{"center", center},
    FilterEntry{"format", format},
    FilterEntry{"string", string},
    FilterEntry{"safe", safe},
    FilterEntry{"escape", escape},
    FilterEntry{"e", escape},
    FilterEntry{"forceescape", force_escape},
    FilterEntry{"striptags", striptags},
    FilterEntry{"urlencode", urlencode},
    FilterEntry{"xmlattr", xmlattr},
};

}  // namespace

std::span<const FilterEntry> text_filters() { return kFilters; }

}  // namespace headrace::jinja
