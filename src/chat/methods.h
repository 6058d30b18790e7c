// The methods of Python's types that a template may call, and the functions that every template
// knows.
#pragma once

#include <span>
#include <string_view>

#include "chat/objects.h"

namespace headrace::jinja {

struct MethodEntry {
  std::string_view name;
  NativeMethod method;
};

std::span<const MethodEntry> search_methods();    // str: find, split, replace, ...
std::span<const MethodEntry> string_methods();    // str: case, strip, padding, is...
std::span<const MethodEntry> sequence_methods();  // list, tuple, range
std::span<const MethodEntry> dict_methods();
std::span<const MethodEntry> number_methods();

// The attribute of a value that Python's own type gives it (a bound method, mostly), or nothing.
std::optional<Value> type_attribute(Interpreter& in, const Value& object, std::string_view name);

void add_builtin_functions(Interpreter& in);

}  // namespace headrace::jinja
