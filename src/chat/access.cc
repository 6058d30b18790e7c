// Reaching into values: attributes, items, slices, walking and measuring.
#include <algorithm>

#include "chat/interpreter.h"
#include "chat/literals.h"
#include "chat/methods.h"
#include "chat/objects.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

Value key_value(const Text& name) { return Value::text(name); }

// Python's slice.indices(): start, stop and step for a length.
struct SliceRange {
  Int start;
  Int stop;
  Int step;
};

Int clamp_index(Int value, Int length, Int low, Int high) {
  if (value < 0) {
    value += length;
  }
  return std::clamp(value, low, high);
}

std::optional<Int> slice_index(const Value& value) {
  if (value.is_none()) {
    return std::nullopt;
  }
  require_defined(value);
  const auto i = value.as_int();
  if (!i) {
    fail("slice indices must be integers or None or have an __index__ method");
  }
  return std::clamp<Int>(*i, -(Int{1} << 62), Int{1} << 62);
}

SliceRange resolve(const Value& start, const Value& stop, const Value& step, std::size_t size) {
  const auto length = static_cast<Int>(size);
  SliceRange out{0, length, slice_index(step).value_or(1)};
  if (out.step == 0) {
    fail("slice step cannot be zero");
  }
  const Int low = out.step < 0 ? -1 : 0;
  const Int high = out.step < 0 ? length - 1 : length;
  const auto first = slice_index(start);
  const auto last = slice_index(stop);
  out.start = first ? clamp_index(*first, length, low, high) : (out.step < 0 ? high : low);
  out.stop = last ? clamp_index(*last, length, low, high) : (out.step < 0 ? low : high);
  return out;
}

Value slice_text(
    Interpreter& in, const Text& text, const Value& start, const Value& stop, const Value& step) {
  const bool simple = text.ascii();
  const std::vector<std::size_t> offsets =
      simple ? std::vector<std::size_t>() : char_offsets(text.view());
  const std::size_t length = simple ? text.size() : offsets.size() - 1;
  in.budget().charge_steps(simple ? 0 : length / 16);
  const SliceRange range = resolve(start, stop, step, length);
  const auto offset = [&](Int i) {
    return simple ? static_cast<std::size_t>(i) : offsets[static_cast<std::size_t>(i)];
  };
  if (range.step == 1) {
    return Value::text(range.start < range.stop ? text.sub(offset(range.start), offset(range.stop))
                                                : text.sub(0, 0));
  }
  TextBuilder out(in.budget());
  for (Int i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    in.budget().charge_steps(1);
    out.add(text.sub(offset(i), offset(i + 1)));
  }
  return Value::text(out.take().with_markup(text.markup()));
}

Value char_of(const Text& text, Int index) {
  const auto length = static_cast<Int>(text.ascii() ? text.size() : count_chars(text.view()));
  if (index < 0) {
    index += length;
  }
  if (index < 0 || index >= length) {
    return Value::undefined("str object has no element");
  }
  const auto n = static_cast<std::size_t>(index);
  const std::size_t begin = text.ascii() ? n : offset_of_char(text.view(), n);
  return Value::text(text.sub(begin, char_at(text.view(), begin).end));
}

// obj[key] of Python; nothing where it raises TypeError or LookupError.
std::optional<Value> subscript(const Value& object, const Value& key) {
  if (const Dict* dict = object.as_dict()) {
    const bool unhashable =
        key.as_dict() != nullptr ||
        (key.as_sequence() != nullptr && key.as_sequence()->kind == SequenceKind::kList);
    const Value* found = unhashable ? nullptr : dict->find(key);
    if (found != nullptr) {
      return *found;
    }
    return std::nullopt;
  }
  const auto index = key.as_int();
  if (!index) {
    return std::nullopt;
  }
  if (const Text* text = object.as_text()) {
    Value c = char_of(*text, *index);
    if (c.is_undefined()) {
      return std::nullopt;
    }
    return c;
  }
  const Sequence* sequence = object.as_sequence();
  if (sequence == nullptr || !sequence->indexable()) {
    return std::nullopt;
  }
  const auto length = static_cast<Int>(sequence->items.size());
  const Int at = *index < 0 ? *index + length : *index;
  if (at < 0 || at >= length) {
    return std::nullopt;
  }
  return sequence->items[static_cast<std::size_t>(at)];
}

bool changes_its_object(const Value& object, std::string_view name) {
  static constexpr std::string_view kList[] = {
      "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto has = [name](auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (object.as_dict() != nullptr) {
    return has(kDict);
  }
  return object.as_sequence() != nullptr && object.as_sequence()->kind == SequenceKind::kList &&
         has(kList);
}

std::optional<Value> python_attribute(Interpreter& in, const Value& object, std::string_view name) {
  if (changes_its_object(object, name)) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)));
  }
  if (Object* o = object.as_object()) {
    return o->attribute(in, name);
  }
  return type_attribute(in, object, name);
}

}  // namespace

Value Interpreter::attribute(const Value& object, const Text& name) {
  require_defined(object);
  if (auto value = python_attribute(*this, object, name.view())) {
    return std::move(*value);
  }
  if (auto value = subscript(object, key_value(name))) {
    return std::move(*value);
  }
  return Value::undefined(
      fmt::format("'{}' has no attribute '{}'", object_name(object), name.view()));
}

Value Interpreter::item(const Value& object, const Value& key) {
  require_defined(object);
  if (auto value = subscript(object, key)) {
    return std::move(*value);
  }
  if (const Text* name = key.as_text()) {
    if (auto value = python_attribute(*this, object, name->view())) {
      return std::move(*value);
    }
    return Value::undefined(
        fmt::format("'{}' has no attribute '{}'", object_name(object), name->view()));
  }
  return Value::undefined(
      fmt::format("{} has no element {}", object_name(object), str(key).view()));
}

Value Interpreter::slice(const Value& object, const SliceExpr& node) {
  const Value start = node.start != nullptr ? eval(*node.start) : Value::none();
  const Value stop = node.stop != nullptr ? eval(*node.stop) : Value::none();
  const Value step = node.step != nullptr ? eval(*node.step) : Value::none();
  require_defined(object);
  const bool sliceable = object.as_sequence() != nullptr && object.as_sequence()->indexable();
  if (object.as_text() == nullptr && !sliceable) {
    fail("'{}' object cannot be sliced", type_name(object));
  }
  if (const Text* text = object.as_text()) {
    return slice_text(*this, *text, start, stop, step);
  }
  const Sequence& sequence = *object.as_sequence();
  const SliceRange range = resolve(start, stop, step, sequence.items.size());
  std::vector<Value> items;
  for (Int i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    items.push_back(sequence.items[static_cast<std::size_t>(i)]);
  }
  budget().charge_steps(items.size() / 4);
  auto out = std::make_shared<Sequence>(
      sequence.kind == SequenceKind::kGroup ? SequenceKind::kTuple : sequence.kind,
      std::move(items));
  if (sequence.kind == SequenceKind::kRange) {
    const Int first = sequence.range[0];
    const Int by = sequence.range[2];
    out->range[0] = first + range.start * by;
    out->range[1] = first + range.stop * by;
    out->range[2] = by * range.step;
  }
  return Value::sequence(std::move(out));
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  if (const Sequence* sequence = value.as_sequence()) {
    budget().charge_steps(sequence->items.size() / 4);
    if (sequence->kind == SequenceKind::kGenerator && std::exchange(sequence->consumed, true)) {
      return {};
    }
    return sequence->items;
  }
  std::vector<Value> out;
  if (const Dict* dict = value.as_dict()) {
    for (const auto& [key, unused] : dict->entries()) {
      out.push_back(key);
    }
    return out;
  }
  if (const Text* text = value.as_text()) {
    const std::string_view view = text->view();
    budget().charge_steps(view.size() / 4);
    for (std::size_t at = 0; at < view.size();) {
      const std::size_t end = char_at(view, at).end;
      out.push_back(Value::text(text->sub(at, end)));
      at = end;
    }
    return out;
  }
  if (value.is_undefined()) {
    return out;
  }
  fail("'{}' object is not iterable", type_name(value));
}

std::size_t Interpreter::length(const Value& value) {
  if (const Text* text = value.as_text()) {
    return text->ascii() ? text->size() : count_chars(text->view());
  }
  if (const Dict* dict = value.as_dict()) {
    return dict->size();
  }
  if (value.is_undefined()) {
    return 0;
  }
  if (const Sequence* sequence = value.as_sequence();
      sequence != nullptr && sequence->kind != SequenceKind::kGenerator) {
    return sequence->items.size();
  }
  if (Object* object = value.as_object()) {
    if (const auto n = object->length(*this)) {
      return *n;
    }
  }
  fail("object of type '{}' has no len()", type_name(value));
}

}  // namespace headrace::jinja
