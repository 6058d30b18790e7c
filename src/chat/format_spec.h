// Python's format(value, spec): fill, alignment, sign, width, grouping, precision, type.
#pragma once

#include "chat/interpreter.h"

namespace headrace::jinja {

Text format_with_spec(Interpreter& in, const Value& value, const Text& spec);

}  // namespace headrace::jinja
