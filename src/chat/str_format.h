// Python's str.format: fields, attributes and items in them, conversions and format specifications.
#pragma once

#include "chat/interpreter.h"

namespace headrace::jinja {

Text str_format(Interpreter& in, const Text& format, const CallArgs& args);

}  // namespace headrace::jinja
