// Methods of lists, tuples, dicts and numbers, and finding a value's method by name.
#include <algorithm>
#include <array>
#include <cmath>

#include "chat/methods.h"
#include "chat/operators.h"

namespace headrace::jinja {
namespace {

Value index_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "index", {"value", "start", "stop"}, 1);
  const std::vector<Value>& items = self.as_sequence()->items;
  const auto size = static_cast<Int>(items.size());
  const auto bound = [&](std::size_t i, Int otherwise) {
    Int at = reader.integer(i, otherwise);
    if (at < 0) {
      at = std::max<Int>(0, at + size);
    }
    return std::min(at, size);
  };
  in.budget().charge_steps(items.size());
  for (Int i = bound(1, 0); i < bound(2, size); ++i) {
    if (equals(items[static_cast<std::size_t>(i)], *reader.get(0))) {
      return Value::integer(i);
    }
  }
  fail("the value is not in the {}", type_name(self));
}

Value count_method(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "count", {"value"}, 1);
  const std::vector<Value>& items = self.as_sequence()->items;
  in.budget().charge_steps(items.size());
  return Value::integer(
      static_cast<Int>(std::count_if(items.begin(), items.end(), [&reader](const Value& item) {
        return equals(item, *reader.get(0));
      })));
}

Value copy_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  take_no_arguments(args, "copy");
  return self;  // values do not change, so the copy is the value
}

Value keys_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  take_no_arguments(args, "keys");
  std::vector<Value> out;
  for (const auto& [key, value] : self.as_dict()->entries()) {
    out.push_back(key);
  }
  return make_sequence(SequenceKind::kKeys, std::move(out));
}

Value values_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  take_no_arguments(args, "values");
  std::vector<Value> out;
  for (const auto& [key, value] : self.as_dict()->entries()) {
    out.push_back(value);
  }
  return make_sequence(SequenceKind::kValues, std::move(out));
}

Value items_method(Interpreter& in, const Value& self, CallArgs& args) {
  take_no_arguments(args, "items");
  in.budget().charge_steps(self.as_dict()->size());
  std::vector<Value> out;
  for (const auto& [key, value] : self.as_dict()->entries()) {
    out.push_back(make_tuple({key, value}));
  }
  return make_sequence(SequenceKind::kItems, std::move(out));
}

Value get_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  if (!args.named.empty()) {
    fail("dict.get() takes no keyword arguments");
  }
  const ArgReader reader(args, "get", {"key", "default"}, 1);
  const Value* found = self.as_dict()->find(*reader.get(0));
  return found != nullptr ? *found : reader.value(1, Value::none());
}

Value is_integer_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  take_no_arguments(args, "is_integer");
  const auto* d = self.get<double>();
  return Value::boolean(d == nullptr || (std::isfinite(*d) && std::floor(*d) == *d));
}

Value bit_length_method(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  take_no_arguments(args, "bit_length");
  if (!self.as_int()) {
    fail("'float' object has no attribute 'bit_length'");
  }
  Int value = *self.as_int();
  if (value < 0) {
    value = -value;
  }
  Int bits = 0;
  for (; value != 0; value >>= 1) {
    ++bits;
  }
  return Value::integer(bits);
}

constexpr std::array kSequenceMethods = {
    MethodEntry{"index", index_method},
    MethodEntry{"count", count_method},
    MethodEntry{"copy", copy_method},
};

constexpr std::array kDictMethods = {
    MethodEntry{"items", items_method},
    MethodEntry{"keys", keys_method},
    MethodEntry{"values", values_method},
    MethodEntry{"get", get_method},
    MethodEntry{"copy", copy_method},
};

constexpr std::array kNumberMethods = {
    MethodEntry{"is_integer", is_integer_method},
    MethodEntry{"bit_length", bit_length_method},
};

const MethodEntry* find_method(std::span<const MethodEntry> methods, std::string_view name) {
  const auto it = std::find_if(methods.begin(), methods.end(), [name](const MethodEntry& entry) {
    return entry.name == name;
  });
  return it == methods.end() ? nullptr : &*it;
}

const MethodEntry* method_of(const Value& object, std::string_view name) {
  if (object.as_text() != nullptr) {
    const MethodEntry* method = find_method(string_methods(), name);
    return method != nullptr ? method : find_method(search_methods(), name);
  }
  if (object.as_dict() != nullptr) {
    return find_method(dict_methods(), name);
  }
  if (object.as_int()) {
    return name == "bit_length" ? find_method(number_methods(), name) : nullptr;
  }
  if (object.get<double>() != nullptr) {
    return name == "is_integer" ? find_method(number_methods(), name) : nullptr;
  }
  const Sequence* sequence = object.as_sequence();
  if (sequence == nullptr || !sequence->indexable()) {
    return nullptr;
  }
  if (name == "copy" && sequence->kind != SequenceKind::kList) {
    return nullptr;
  }
  return find_method(sequence_methods(), name);
}

}  // namespace

std::span<const MethodEntry> sequence_methods() { return kSequenceMethods; }
std::span<const MethodEntry> dict_methods() { return kDictMethods; }
std::span<const MethodEntry> number_methods() { return kNumberMethods; }

std::optional<Value> type_attribute(Interpreter& /*in*/,
                                    const Value& object,
                                    std::string_view name) {
  const Sequence* sequence = object.as_sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::kGroup) {
    if (name == "grouper") {
      return sequence->items[0];
    }
    if (name == "list") {
      return sequence->items[1];
    }
  }
  if (object.as_int() && (name == "real" || name == "numerator")) {
    return Value::integer(*object.as_int());
  }
  const MethodEntry* method = method_of(object, name);
  if (method == nullptr) {
    return std::nullopt;
  }
  return Value::object(std::make_shared<BoundMethod>(object, method->name, method->method));
}

}  // namespace headrace::jinja
