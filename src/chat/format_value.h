// str() and repr() of values as Python prints them. The characters of strings keep their
// provenance; numbers, true, false and none count as the template's (a template that builds a token
// from a counter means it); brackets, quotes and escapes around and in untrusted text are
// untrusted.
#pragma once

#include "chat/text.h"
#include "chat/value.h"

namespace headrace::jinja {

void append_str(TextBuilder& out, const Value& value);
void append_repr(TextBuilder& out, const Value& value, int depth = 0);
// A number in one of printf's float formats (e E f F g G %), Python's spelling of inf and nan.
std::string format_double(double value, char type, int precision, bool alternate);
std::string int_in_base(Int magnitude_of, int base, bool upper);  // digits without a sign

}  // namespace headrace::jinja
