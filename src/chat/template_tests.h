// Jinja's tests (`x is defined`). The table is constant.
#pragma once

#include <string_view>

#include "chat/interpreter.h"

namespace headrace::jinja {

struct TestEntry {
  std::string_view name;
  bool (*apply)(Interpreter& in, const Value& input, CallArgs& args);
};

const TestEntry* find_test(std::string_view name);  // null: there is none

}  // namespace headrace::jinja
