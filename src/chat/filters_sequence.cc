// Filters that measure, take apart and put together sequences.
#include <algorithm>
#include <array>

#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/strings.h"

namespace headrace::jinja {
namespace {

void no_arguments(CallArgs& args, std::string_view filter) { ArgReader(args, filter, {}); }

Value generator(std::vector<Value> items) {
  return make_sequence(SequenceKind::kGenerator, std::move(items));
}

Value length(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "length");
  return Value::integer(static_cast<Int>(in.length(input)));
}

Value list(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "list");
  return make_list(in.iterate(input));
}

Value first(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "first");
  // Takes one item; a generator keeps the rest, which no template can tell from a fresh one.
  std::vector<Value> items = in.iterate(input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

bool reversible(const Value& value) {
  const Sequence* s = value.as_sequence();
  return value.as_text() != nullptr || value.as_dict() != nullptr ||
         (s != nullptr && s->kind != SequenceKind::kGenerator);
}

Value last(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "last");
  if (!reversible(input) && !input.is_undefined()) {
    fail("'{}' object is not reversible", type_name(input));
  }
  std::vector<Value> items = in.iterate(input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "reverse");
  std::vector<Value> items = in.iterate(input);
  std::reverse(items.begin(), items.end());
  if (input.as_text() == nullptr) {
    return reversible(input) ? generator(std::move(items)) : make_list(std::move(items));
  }
  TextBuilder out(in.budget());
  for (const Value& c : items) {
    out.add(*c.as_text());
  }
  return Value::text(out.take());
}

Value joined(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "join", {"d", "attribute"});
  const Value* attribute = reader.get(1);
  std::vector<Text> parts;
  for (const Value& item : in.iterate(input)) {
    const bool whole = attribute == nullptr || attribute->is_none();
    parts.push_back(in.str(whole ? item : dotted_item(in, item, *attribute)));
  }
  const Text separator = reader.get(0) != nullptr ? in.str(*reader.get(0)) : Text();
  return Value::text(join(in.budget(), separator.with_markup(false), parts));
}

Value batch(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "batch", {"linecount", "fill_with"}, 1);
  const Int size = reader.integer(0, 1);
  const Value fill = reader.value(1, Value::none());
  std::vector<Value> rows;
  std::vector<Value> row;
  for (Value& item : in.iterate(input)) {
    if (static_cast<Int>(row.size()) == size) {
      rows.push_back(make_list(std::exchange(row, {})));
    }
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    const Int missing = fill.is_none() ? 0 : size - static_cast<Int>(row.size());
    if (missing > 0) {
      if (missing > 1'000'000) {
        fail_budget("batch: the lines are too long");
      }
      in.budget().charge_steps(static_cast<std::size_t>(missing));
      row.insert(row.end(), static_cast<std::size_t>(missing), fill);
    }
    rows.push_back(make_list(std::move(row)));
  }
  return generator(std::move(rows));
}

Value slice(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "slice", {"slices", "fill_with"}, 1);
  const Int slices = reader.integer(0, 1);
  if (slices == 0) {
    fail("integer division or modulo by zero");
  }
  if (slices < 0) {
    return generator({});
  }
  if (slices > 1'000'000) {
    fail_budget("slice: there are too many slices");
  }
  in.budget().charge_steps(static_cast<std::size_t>(slices));
  const Value fill = reader.value(1, Value::none());
  const std::vector<Value> items = in.iterate(input);
  const auto count = static_cast<std::size_t>(slices);
  const std::size_t each = items.size() / count;
  const std::size_t extra = items.size() % count;
  std::vector<Value> rows;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = at + each + (i < extra ? 1 : 0);
    std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(at),
                           items.begin() + static_cast<std::ptrdiff_t>(end));
    if (!fill.is_none() && i >= extra) {
      row.push_back(fill);
    }
    rows.push_back(make_list(std::move(row)));
    at = end;
  }
  return generator(std::move(rows));
}

Value pairs(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args, "items");
  static_cast<void>(in);
  if (input.is_undefined()) {
    return generator({});
  }
  const Dict* dict = input.as_dict();
  if (dict == nullptr) {
    fail("Can only get item pairs from a mapping.");
  }
  std::vector<Value> out;
  for (const auto& [key, value] : dict->entries()) {
    out.push_back(make_tuple({key, value}));
  }
  return generator(std::move(out));
}

Value sum(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "sum", {"attribute", "start"});
  const Value* attribute = reader.get(0);
  Value total = reader.value(1, Value::integer(0));
  if (total.as_text() != nullptr) {
    fail("sum() can't sum strings [use ''.join(seq) instead]");
  }
  for (const Value& item : in.iterate(input)) {
    const bool whole = attribute == nullptr || attribute->is_none();
    total = binary_operation(
        in, BinaryOp::kAdd, total, whole ? item : dotted_item(in, item, *attribute));
  }
  return total;
}

constexpr std::array kFilters = {
    FilterEntry{"length", length},
    FilterEntry{"count", length},
    FilterEntry{"list", list},
    FilterEntry{"first", first},
    FilterEntry{"last", last},
    FilterEntry{"reverse", reverse},
    FilterEntry{"join", joined},
    FilterEntry{"batch", batch},
    FilterEntry{"slice", slice},
    FilterEntry{"items", pairs},
    FilterEntry{"sum", sum},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() { return kFilters; }

}  // namespace headrace::jinja
