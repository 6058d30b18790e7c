#include "chat/template_tests.h"

#include <algorithm>
#include <array>

#include "chat/filters.h"
#include "chat/literals.h"
#include "chat/operators.h"
#include "chat/strings.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

using Predicate = bool (*)(const Value&);

void no_arguments(CallArgs& args) { ArgReader(args, "test", {}); }

Value one_argument(CallArgs& args) { return *ArgReader(args, "test", {"other"}, 1).get(0); }

template <Predicate kPredicate>
bool check(Interpreter& /*in*/, const Value& input, CallArgs& args) {
  no_arguments(args);
  return kPredicate(input);
}

template <CompareOp kOp>
bool compare(Interpreter& in, const Value& input, CallArgs& args) {
  return compare_values(in, kOp, input, one_argument(args));
}

Value modulo(Interpreter& in, const Value& value, const Value& divisor) {
  return binary_operation(in, BinaryOp::kMod, value, divisor);
}

bool odd(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args);
  return equals(modulo(in, input, Value::integer(2)), Value::integer(1));
}

bool even(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args);
  return equals(modulo(in, input, Value::integer(2)), Value::integer(0));
}

bool divisible(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "divisibleby", {"num"}, 1);
  return equals(modulo(in, input, *reader.get(0)), Value::integer(0));
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.get<bool>() != nullptr; }
bool is_true(const Value& v) { return is_boolean(v) && *v.get<bool>(); }
bool is_false(const Value& v) { return is_boolean(v) && !*v.get<bool>(); }
bool is_integer(const Value& v) { return v.get<Int>() != nullptr; }
bool is_float(const Value& v) { return v.get<double>() != nullptr; }
bool is_number(const Value& v) { return v.as_int().has_value() || is_float(v); }
bool is_string(const Value& v) { return v.as_text() != nullptr; }
bool is_mapping(const Value& v) { return v.as_dict() != nullptr; }
bool is_callable(const Value& v) {
  return v.is_undefined() || (v.as_object() != nullptr && v.as_object()->callable());
}
bool is_escaped(const Value& v) { return is_string(v) && v.as_text()->markup(); }

bool is_sequence(const Value& v) {
  const Sequence* s = v.as_sequence();
  return v.is_undefined() || is_string(v) || is_mapping(v) || (s != nullptr && s->indexable());
}

bool is_iterable(const Value& v) {
  return v.is_undefined() || is_string(v) || is_mapping(v) || v.as_sequence() != nullptr ||
         (v.as_object() != nullptr && v.as_object()->type_name() == "LoopContext");
}

bool lower(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args);
  return has_case(in.str(input).view(), CharClass::kLower);
}

bool upper(Interpreter& in, const Value& input, CallArgs& args) {
  no_arguments(args);
  return has_case(in.str(input).view(), CharClass::kUpper);
}

bool same_as(Interpreter& /*in*/, const Value& input, CallArgs& args) {
  return identical(input, one_argument(args));
}

bool is_in(Interpreter& in, const Value& input, CallArgs& args) {
  return contains(in, *ArgReader(args, "in", {"seq"}, 1).get(0), input);
}

bool is_filter(Interpreter& /*in*/, const Value& input, CallArgs& args) {
  no_arguments(args);
  return is_string(input) && find_filter(input.as_text()->view()) != nullptr;
}

bool is_test(Interpreter& /*in*/, const Value& input, CallArgs& args) {
  no_arguments(args);
  return is_string(input) && find_test(input.as_text()->view()) != nullptr;
}

constexpr std::array kTests = {
    TestEntry{"odd", odd},
    TestEntry{"even", even},
    TestEntry{"divisibleby", divisible},
    TestEntry{"defined", check<is_defined>},
    TestEntry{"undefined", check<is_undefined>},
    TestEntry{"filter", is_filter},
    TestEntry{"test", is_test},
    TestEntry{"none", check<is_none>},
    TestEntry{"boolean", check<is_boolean>},
    TestEntry{"false", check<is_false>},
    TestEntry{"true", check<is_true>},
    TestEntry{"integer", check<is_integer>},
    TestEntry{"float", check<is_float>},
    TestEntry{"lower", lower},
    TestEntry{"upper", upper},
    TestEntry{"string", check<is_string>},
    TestEntry{"mapping", check<is_mapping>},
    TestEntry{"number", check<is_number>},
    TestEntry{"sequence", check<is_sequence>},
    TestEntry{"iterable", check<is_iterable>},
    TestEntry{"callable", check<is_callable>},
    TestEntry{"sameas", same_as},
    TestEntry{"escaped", check<is_escaped>},
    TestEntry{"in", is_in},
    TestEntry{"==", compare<CompareOp::kEq>},
    TestEntry{"eq", compare<CompareOp::kEq>},
    TestEntry{"equalto", compare<CompareOp::kEq>},
    TestEntry{"!=", compare<CompareOp::kNe>},
    TestEntry{"ne", compare<CompareOp::kNe>},
    TestEntry{">", compare<CompareOp::kGt>},
    TestEntry{"gt", compare<CompareOp::kGt>},
    TestEntry{"greaterthan", compare<CompareOp::kGt>},
    TestEntry{"ge", compare<CompareOp::kGe>},
    TestEntry{">=", compare<CompareOp::kGe>},
    TestEntry{"<", compare<CompareOp::kLt>},
    TestEntry{"lt", compare<CompareOp::kLt>},
    TestEntry{"lessthan", compare<CompareOp::kLt>},
    TestEntry{"<=", compare<CompareOp::kLe>},
    TestEntry{"le", compare<CompareOp::kLe>},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
  const auto* const it = std::find_if(
      kTests.begin(), kTests.end(), [name](const TestEntry& entry) { return entry.name == name; });
  return it == kTests.end() ? nullptr : it;
}

}  // namespace headrace::jinja
