// Methods of str that find, cut, join and replace.
#include <array>

#include "chat/methods.h"
#include "chat/operators.h"
#include "chat/str_format.h"
#include "chat/strings.h"

namespace headrace::jinja {
namespace {

const Text& self_text(const Value& self) { return *self.as_text(); }

Text required_text(const ArgReader& reader, std::size_t i) {
  const Text* text = reader.text(i);
  if (text == nullptr) {
    fail("a string is required, not NoneType");
  }
  return *text;
}

std::int64_t limit_of(const ArgReader& reader, std::size_t i) {
  const Int limit = reader.integer(i, -1);
  return limit < 0 ? -1 : static_cast<std::int64_t>(std::min<Int>(limit, Int{1} << 40));
}

Value texts(std::vector<Text> parts) {
  std::vector<Value> out;
  out.reserve(parts.size());
  for (Text& part : parts) {
    out.push_back(Value::text(std::move(part)));
  }
  return make_list(std::move(out));
}

Value split_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "split", {"sep", "maxsplit"});
  in.budget().charge_steps(self_text(self).size() / 16);
  return texts(split(self_text(self), reader.text(0), limit_of(reader, 1)));
}

Value rsplit_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "rsplit", {"sep", "maxsplit"});
  in.budget().charge_steps(self_text(self).size() / 16);
  return texts(split_from_right(self_text(self), reader.text(0), limit_of(reader, 1)));
}

Value splitlines_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "splitlines", {"keepends"});
  in.budget().charge_steps(self_text(self).size() / 16);
  return texts(split_lines(self_text(self), reader.flag(0, false)));
}

Value replace_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "replace", {"old", "new", "count"}, 2);
  return Value::text(replace(in.budget(),
                             self_text(self),
                             required_text(reader, 0),
                             required_text(reader, 1),
                             limit_of(reader, 2)));
}

Value join_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "join", {"iterable"}, 1);
  std::vector<Text> parts;
  for (const Value& item : in.iterate(*reader.get(0))) {
    if (item.as_text() == nullptr) {
      fail("sequence item {}: expected str instance, {} found", parts.size(), type_name(item));
    }
    parts.push_back(*item.as_text());
  }
  return Value::text(join(in.budget(), self_text(self), parts));
}

// The part of the text that start and end (characters) leave, as offsets of bytes.
struct Window {
  std::size_t begin;
  std::size_t end;
  bool valid;
};

Window window(const ArgReader& reader, const Text& text) {
  const std::string_view view = text.view();
  const auto length = static_cast<Int>(count_chars(view));
  const auto bound = [&](std::size_t i, Int otherwise) {
    const Value* value = reader.get(i);
    Int at = value == nullptr || value->is_none() ? otherwise : reader.integer(i, 0);
    if (at < 0) {
      at = std::max<Int>(0, at + length);
    }
    return at;
  };
  const Int first = bound(1, 0);
  const Int last = std::min(bound(2, length), length);
  if (first > last) {
    return {0, 0, false};
  }
  return {offset_of_char(view, static_cast<std::size_t>(first)),
          offset_of_char(view, static_cast<std::size_t>(last)),
          true};
}

Int find_in(const Value& self, CallArgs& args, std::string_view name, bool from_right) {
  const ArgReader reader(args, name, {"sub", "start", "end"}, 1);
  const Text& text = self_text(self);
  const Window w = window(reader, text);
  if (!w.valid) {
    return -1;
  }
  const std::string_view part = text.view().substr(w.begin, w.end - w.begin);
  const Text needle = required_text(reader, 0);
  const std::size_t at = from_right ? part.rfind(needle.view()) : part.find(needle.view());
  if (at == std::string_view::npos) {
    return -1;
  }
  return static_cast<Int>(count_chars(text.view().substr(0, w.begin + at)));
}

Value find_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  return Value::integer(find_in(self, args, "find", false));
}

Value rfind_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  return Value::integer(find_in(self, args, "rfind", true));
}

Value index_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  const Int at = find_in(self, args, "index", false);
  if (at < 0) {
    fail("substring not found");
  }
  return Value::integer(at);
}

Value rindex_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  const Int at = find_in(self, args, "rindex", true);
  if (at < 0) {
    fail("substring not found");
  }
  return Value::integer(at);
}

Value count_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "count", {"sub", "start", "end"}, 1);
  const Window w = window(reader, self_text(self));
  if (!w.valid) {
    return Value::integer(0);
  }
  const std::string_view part = self_text(self).view().substr(w.begin, w.end - w.begin);
  const Text needle = required_text(reader, 0);
  if (needle.empty()) {
    return Value::integer(static_cast<Int>(count_chars(part)) + 1);
  }
  Int count = 0;
  for (std::size_t at = part.find(needle.view()); at != std::string_view::npos;
       at = part.find(needle.view(), at + needle.size())) {
    ++count;
  }
  return Value::integer(count);
}

// startswith and endswith take one string or a tuple of them.
Value affix(const Value& self, CallArgs& args, std::string_view name, bool at_end) {
  const ArgReader reader(args, name, {"prefix", "start", "end"}, 1);
  const Window w = window(reader, self_text(self));
  const std::string_view part =
      w.valid ? self_text(self).view().substr(w.begin, w.end - w.begin) : "";
  const auto matches = [&](const Value& value) {
    require_defined(value);
    if (value.as_text() == nullptr) {
      fail("{} takes a string or a tuple of strings, not {}", name, type_name(value));
    }
    const std::string_view wanted = value.as_text()->view();
    return w.valid && (at_end ? part.ends_with(wanted) : part.starts_with(wanted));
  };
  const Sequence* several = reader.get(0)->as_sequence();
  if (several == nullptr || !several->is_tuple()) {
    return Value::boolean(matches(*reader.get(0)));
  }
  for (const Value& value : several->items) {
    if (matches(value)) {
      return Value::boolean(true);
    }
  }
  return Value::boolean(false);
}

Value startswith_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  return affix(self, args, "startswith", false);
}

Value endswith_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  return affix(self, args, "endswith", true);
}

Value partition(const Value& self, CallArgs& args, std::string_view name, bool from_right) {
  const ArgReader reader(args, name, {"sep"}, 1);
  const Text& text = self_text(self);
  const Text separator = required_text(reader, 0);
  if (separator.empty()) {
    fail("empty separator");
  }
  const std::size_t at =
      from_right ? text.view().rfind(separator.view()) : text.view().find(separator.view());
  const auto part = [&](std::size_t begin, std::size_t end) {
    return Value::text(text.sub(begin, end));
  };
  const Value nothing = Value::text(Text());
  if (at == std::string_view::npos) {
    const Value all = Value::text(text);
    return from_right ? make_tuple({nothing, nothing, all}) : make_tuple({all, nothing, nothing});
  }
  const std::size_t behind = at + separator.size();
  return make_tuple({part(0, at), Value::text(separator), part(behind, text.size())});
}

Value partition_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  return partition(self, args, "partition", false);
}

Value rpartition_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  return partition(self, args, "rpartition", true);
}

Value removeprefix_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "removeprefix", {"prefix"}, 1);
  const Text& text = self_text(self);
  const Text prefix = required_text(reader, 0);
  return Value::text(text.view().starts_with(prefix.view()) ? text.sub(prefix.size(), text.size())
                                                            : text);
}

Value removesuffix_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "removesuffix", {"suffix"}, 1);
  const Text& text = self_text(self);
  const Text suffix = required_text(reader, 0);
  return Value::text(text.view().ends_with(suffix.view()) ? text.sub(0, text.size() - suffix.size())
                                                          : text);
}

Value format_method(Interpreter& in, const Value& self, CallArgs& args) {
  return Value::text(str_format(in, self_text(self), args));
}

Value format_map_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "format_map", {"mapping"}, 1);
  const Dict* dict = reader.get(0)->as_dict();
  if (dict == nullptr) {
    fail("format_map() takes a mapping");
  }
  CallArgs named;
  for (const auto& [key, value] : dict->entries()) {
    if (key.as_text() != nullptr) {
      named.named.emplace_back(key.as_text()->str(), value);
    }
  }
  return Value::text(str_format(in, self_text(self), named));
}

constexpr std::array kMethods = {
    MethodEntry{"split", split_method},
    MethodEntry{"rsplit", rsplit_method},
    MethodEntry{"splitlines", splitlines_method},
    MethodEntry{"replace", replace_method},
    MethodEntry{"join", join_method},
    MethodEntry{"find", find_method},
    MethodEntry{"rfind", rfind_method},
    MethodEntry{"index", index_method},
    MethodEntry{"rindex", rindex_method},
    MethodEntry{"count", count_method},
    MethodEntry{"startswith", startswith_method},
    MethodEntry{"endswith", endswith_method},
    MethodEntry{"partition", partition_method},
    MethodEntry{"rpartition", rpartition_method},
    MethodEntry{"removeprefix", removeprefix_method},
    MethodEntry{"removesuffix", removesuffix_method},
    MethodEntry{"format", format_method},
    MethodEntry{"format_map", format_map_method},
};

}  // namespace

std::span<const MethodEntry> search_methods() { return kMethods; }

}  // namespace headrace::jinja
