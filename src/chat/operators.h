// Python's operators on template values. Undefined operands and types that do not fit fail.
#pragma once

#include "chat/ast.h"
#include "chat/value.h"

namespace headrace::jinja {

Value binary_operation(Interpreter& in, BinaryOp op, const Value& a, const Value& b);
bool compare_values(Interpreter& in, CompareOp op, const Value& a, const Value& b);
// -1, 0, 1; for sorting. Fails where Python cannot order the two.
bool less_than(const Value& a, const Value& b);
bool contains(Interpreter& in, const Value& container, const Value& item);
Value signed_value(bool negative, const Value& value);
// Fails with the reason if the value is undefined.
void require_defined(const Value& value);
double to_double(const Value& value);  // of a number

}  // namespace headrace::jinja
