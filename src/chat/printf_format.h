// Python's % operator on strings. What the format wrote and what each argument wrote stay apart.
#pragma once

#include "chat/text.h"
#include "chat/value.h"

namespace headrace::jinja {

Text printf_format(Interpreter& in, const Text& format, const Value& arguments);

}  // namespace headrace::jinja
