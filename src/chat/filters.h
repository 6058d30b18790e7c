// Jinja's filters. The tables are constant; a filter is a pure function of its input and arguments.
#pragma once

#include <span>
#include <string_view>

#include "chat/interpreter.h"

namespace headrace::jinja {

struct FilterEntry {
  std::string_view name;
  Value (*apply)(Interpreter& in, const Value& input, CallArgs& args);
};

const FilterEntry* find_filter(std::string_view name);  // null: there is none

// By file: text, values (numbers, JSON, defaults), sequences, and choosing and sorting.
std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> wrap_filters();
std::span<const FilterEntry> value_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> select_filters();

// item.a.b or item.0, as the attribute arguments of filters name it.
Value dotted_item(Interpreter& in, const Value& item, const Value& path);

}  // namespace headrace::jinja
