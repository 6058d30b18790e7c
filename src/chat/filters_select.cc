// Filters that choose, order and map the items of sequences.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/strings.h"

namespace headrace::jinja {
namespace {

Value generator(std::vector<Value> items) {
  return make_sequence(SequenceKind::kGenerator, std::move(items));
}

Value without_case(const Value& value) {
  const Text* text = value.as_text();
  return text == nullptr ? value : Value::text(Text(folded(text->view()), false));
}

Value key_of(Interpreter& in, const Value& item, const Value& attribute, bool case_sensitive) {
  Value key = dotted_item(in, item, attribute);
  return case_sensitive ? key : without_case(key);
}

// Items with their keys, in stable order of the keys.
std::vector<std::pair<Value, Value>> sorted_by(Interpreter& in,
                                               std::vector<std::pair<Value, Value>> keyed,
                                               bool descending) {
  in.budget().charge_steps(keyed.size() * 16);
  std::stable_sort(keyed.begin(), keyed.end(), [descending](const auto& a, const auto& b) {
    return descending ? less_than(b.first, a.first) : less_than(a.first, b.first);
  });
  return keyed;
}

// The key of sort: one value for each attribute named, separated by commas.
Value sort_key(Interpreter& in, const Value& item, const Value& attribute, bool case_sensitive) {
  const Text* names = attribute.as_text();
  if (names == nullptr) {
    return make_list({key_of(in, item, attribute, case_sensitive)});
  }
  std::vector<Value> keys;
  const Text comma = Text::literal(",");
  for (const Text& name : split(*names, &comma, -1)) {
    keys.push_back(key_of(in, item, Value::text(name), case_sensitive));
  }
  return make_list(std::move(keys));
}

std::vector<Value> values_of(const std::vector<std::pair<Value, Value>>& keyed) {
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (const auto& [key, value] : keyed) {
    out.push_back(value);
  }
  return out;
}

Value sort(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "sort", {"reverse", "case_sensitive", "attribute"});
  const Value attribute = reader.value(2, Value::none());
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : in.iterate(input)) {
    keyed.emplace_back(sort_key(in, item, attribute, reader.flag(1, false)), item);
  }
  return make_list(values_of(sorted_by(in, std::move(keyed), reader.flag(0, false))));
}

Value dictsort(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "dictsort", {"case_sensitive", "by", "reverse"});
  const std::string by = reader.text(1) != nullptr ? reader.text(1)->str() : "key";
  if (by != "key" && by != "value") {
    fail("You can only sort by either \"key\" or \"value\"");
  }
  require_defined(input);
  const Dict* dict = input.as_dict();
  if (dict == nullptr) {
    fail("'{}' has no attribute 'items'", object_name(input));
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : dict->entries()) {
    const Value& chosen = by == "key" ? key : value;
    keyed.emplace_back(reader.flag(0, false) ? chosen : without_case(chosen),
                       make_tuple({key, value}));
  }
  return make_list(values_of(sorted_by(in, std::move(keyed), reader.flag(2, false))));
}

Value unique(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "unique", {"case_sensitive", "attribute"});
  const Value attribute = reader.value(1, Value::none());
  Dict seen;
  std::vector<Value> out;
  for (const Value& item : in.iterate(input)) {
    const Value key = key_of(in, item, attribute, reader.flag(0, false));
    if (seen.find(key) != nullptr) {
      continue;
    }
    seen.set(key, Value::none());
    out.push_back(item);
  }
  return generator(std::move(out));
}

Value extreme(Interpreter& in, const Value& input, CallArgs& args, bool largest) {
  const ArgReader reader(args, largest ? "max" : "min", {"case_sensitive", "attribute"});
  const Value attribute = reader.value(1, Value::none());
  const std::vector<Value> items = in.iterate(input);
  if (items.empty()) {
    return Value::undefined("No aggregated item, sequence was empty.");
  }
  Value best = items.front();
  Value best_key = key_of(in, best, attribute, reader.flag(0, false));
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value key = key_of(in, items[i], attribute, reader.flag(0, false));
    if (largest ? less_than(best_key, key) : less_than(key, best_key)) {
      best = items[i];
      best_key = std::move(key);
    }
  }
  return best;
}

Value minimum(Interpreter& in, const Value& input, CallArgs& args) {
  return extreme(in, input, args, false);
}
Value maximum(Interpreter& in, const Value& input, CallArgs& args) {
  return extreme(in, input, args, true);
}

Value groupby(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  const Value otherwise = reader.value(1, Value::none());
  const auto group_key = [&](const Value& item) {
    Value key = dotted_item(in, item, *reader.get(0));
    return key.is_undefined() && !otherwise.is_none() ? otherwise : key;
  };
  const bool case_sensitive = reader.flag(2, false);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : in.iterate(input)) {
    const Value key = group_key(item);
    keyed.emplace_back(case_sensitive ? key : without_case(key), item);
  }
  keyed = sorted_by(in, std::move(keyed), false);
  std::vector<Value> groups;
  for (std::size_t at = 0; at < keyed.size();) {
    std::vector<Value> members;
    const std::size_t begin = at;
    for (; at < keyed.size() && equals(keyed[at].first, keyed[begin].first); ++at) {
      members.push_back(keyed[at].second);
    }
    const Value grouper = group_key(members.front());
    groups.push_back(make_sequence(SequenceKind::kGroup, {grouper, make_list(std::move(members))}));
  }
  return make_list(std::move(groups));
}

Value take_front(CallArgs& args, std::string_view message) {
  if (args.positional.empty()) {
    fail("{}", message);
  }
  Value front = args.positional.front();
  args.positional.erase(args.positional.begin());
  return front;
}

std::string name_of(const Value& value) {
  const Text* text = value.as_text();
  if (text == nullptr) {
    fail("a name is required, not {}", type_name(value));
  }
  return text->str();
}

std::optional<Value> take_named(CallArgs& args, std::string_view name) {
  const auto it = std::find_if(
      args.named.begin(), args.named.end(), [name](const auto& e) { return e.first == name; });
  if (it == args.named.end()) {
    return std::nullopt;
  }
  Value value = it->second;
  args.named.erase(it);
  return value;
}

Value map(Interpreter& in, const Value& input, CallArgs& args) {
  std::vector<Value> out;
  if (!truthy(input)) {
    return generator({});
  }
  if (args.positional.empty()) {
    const auto attribute = take_named(args, "attribute");
    if (!attribute) {
      fail("map requires a filter argument");
    }
    const Value otherwise = take_named(args, "default").value_or(Value::none());
    if (!args.named.empty()) {
      fail("Unexpected keyword argument '{}'", args.named.front().first);
    }
    for (const Value& item : in.iterate(input)) {
      const Value mapped = dotted_item(in, item, *attribute);
      out.push_back(mapped.is_undefined() && !otherwise.is_none() ? otherwise : mapped);
    }
    return generator(std::move(out));
  }
  const std::string name = name_of(take_front(args, ""));
  for (const Value& item : in.iterate(input)) {
    CallArgs copy = args;
    out.push_back(in.apply_filter(name, item, copy));
  }
  return generator(std::move(out));
}

Value choose(Interpreter& in, const Value& input, CallArgs& args, bool wanted, bool by_attribute) {
  if (!truthy(input)) {
    return generator({});
  }
  const Value attribute =
      by_attribute ? take_front(args, "Missing parameter for attribute name") : Value::none();
  const bool has_test = !args.positional.empty();
  const std::string test = has_test ? name_of(take_front(args, "")) : "";
  std::vector<Value> out;
  for (const Value& item : in.iterate(input)) {
    const Value subject = by_attribute ? dotted_item(in, item, attribute) : item;
    CallArgs copy = args;
    const bool passed = has_test ? in.apply_test(test, subject, copy) : truthy(subject);
    if (passed == wanted) {
      out.push_back(item);
    }
  }
  return generator(std::move(out));
}

Value select(Interpreter& in, const Value& v, CallArgs& args) {
  return choose(in, v, args, true, false);
}
Value reject(Interpreter& in, const Value& v, CallArgs& args) {
  return choose(in, v, args, false, false);
}
Value selectattr(Interpreter& in, const Value& v, CallArgs& args) {
  return choose(in, v, args, true, true);
}
Value rejectattr(Interpreter& in, const Value& v, CallArgs& args) {
  return choose(in, v, args, false, true);
}

constexpr std::array kFilters = {
    FilterEntry{"sort", sort},
    FilterEntry{"dictsort", dictsort},
    FilterEntry{"unique", unique},
    FilterEntry{"min", minimum},
    FilterEntry{"max", maximum},
    FilterEntry{"groupby", groupby},
    FilterEntry{"map", map},
    FilterEntry{"select", select},
    FilterEntry{"reject", reject},
    FilterEntry{"selectattr", selectattr},
    FilterEntry{"rejectattr", rejectattr},
};

}  // namespace

std::span<const FilterEntry> select_filters() { return kFilters; }

}  // namespace headrace::jinja
