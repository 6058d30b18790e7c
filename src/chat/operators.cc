#include "chat/operators.h"

#include <algorithm>
#include <cmath>

#include "chat/html.h"
#include "chat/interpreter.h"
#include "chat/printf_format.h"

namespace headrace::jinja {
namespace {

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kFloorDiv:
      return "//";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kPow:
      return "**";
  }
  return "?";
}

bool is_number(const Value& v) { return v.as_int().has_value() || v.get<double>() != nullptr; }

[[noreturn]] void unsupported(BinaryOp op, const Value& a, const Value& b) {
  fail("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

[[noreturn]] void overflow() { fail_budget("an integer is too big"); }

Int floor_div(Int a, Int b) {
  const Int q = a / b;
  return q * b != a && ((a < 0) != (b < 0)) ? q - 1 : q;
}

Value int_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) {
      fail("0.0 cannot be raised to a negative power");
    }
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      overflow();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      overflow();
    }
  }
  return Value::integer(result);
}

Value int_operation(BinaryOp op, Int a, Int b) {
  Int out = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &out)) {
        overflow();
      }
      return Value::integer(out);
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &out)) {
        overflow();
      }
      return Value::integer(out);
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &out)) {
        overflow();
      }
      return Value::integer(out);
    case BinaryOp::kDiv:
      if (b == 0) {
        fail("division by zero");
      }
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDiv:
      if (b == 0) {
        fail("integer division or modulo by zero");
      }
      if (b == -1) {
        return int_operation(BinaryOp::kSub, 0, a);
      }
      return Value::integer(floor_div(a, b));
    case BinaryOp::kMod:
      if (b == 0) {
        fail("integer modulo by zero");
      }
      if (b == -1) {
        return Value::integer(0);
      }
      return Value::integer(a - floor_div(a, b) * b);
    case BinaryOp::kPow:
      return int_power(a, b);
  }
  return Value();
}

struct DivMod {
  double quotient;
  double remainder;
};

// As Python's float_divmod: the remainder has the divisor's sign.
DivMod float_divmod(double a, double b) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1.0;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  if (div == 0) {
    return {std::copysign(0.0, a / b), mod};
  }
  double floored = std::floor(div);
  if (div - floored > 0.5) {
    floored += 1.0;
  }
  return {floored, mod};
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) {
    fail("0.0 cannot be raised to a negative power");
  }
  if (a < 0 && std::floor(b) != b && std::isfinite(b)) {
    fail("a negative number has no real power of {}", b);
  }
  const double out = std::pow(a, b);
  if (std::isinf(out) && std::isfinite(a) && std::isfinite(b)) {
    fail("Numerical result out of range");
  }
  return out;
}

double float_operation(BinaryOp op, double a, double b) {
  const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv || op == BinaryOp::kMod;
  if (divides && b == 0) {
    fail("float division by zero");
  }
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kFloorDiv:
      return float_divmod(a, b).quotient;
    case BinaryOp::kMod:
      return float_divmod(a, b).remainder;
    case BinaryOp::kPow:
      return float_power(a, b);
  }
  return 0;
}

Value repeat(Interpreter& in, const Value& what, Int times) {
  if (times < 0) {
    times = 0;
  }
  if (const Text* text = what.as_text()) {
    if (!text->empty() && times > (Int{1} << 32)) {
      fail_budget("the template makes too much text");
    }
    TextBuilder out(in.budget());
    for (Int i = 0; i < times && !text->empty(); ++i) {
      out.add(*text);
    }
    return Value::text(out.take().with_markup(text->markup()));
  }
  const Sequence* sequence = what.as_sequence();
  std::vector<Value> items;
  if (!sequence->items.empty()) {
    check_size(sequence->items.size(), static_cast<std::size_t>(times));
  }
  for (Int i = 0; i < times && !sequence->items.empty(); ++i) {
    in.budget().charge_steps(sequence->items.size());
    items.insert(items.end(), sequence->items.begin(), sequence->items.end());
  }
  return make_sequence(sequence->kind, std::move(items));
}

bool repeatable(const Value& v) {
  const Sequence* s = v.as_sequence();
  return v.as_text() != nullptr ||
         (s != nullptr && (s->kind == SequenceKind::kList || s->is_tuple()));
}

Value add_texts(Interpreter& in, const Text& a, const Text& b) {
  if (a.markup() == b.markup()) {
    return Value::text(a.append(b, in.budget()));
  }
  const Text left = a.markup() ? a : escape_html(in.budget(), a);
  const Text right = b.markup() ? b : escape_html(in.budget(), b);
  return Value::text(left.append(right, in.budget()).with_markup(true));
}

Value add_sequences(
    Interpreter& in, const Sequence& a, const Sequence& b, const Value& left, const Value& right) {
  const bool fits = (a.kind == SequenceKind::kList && b.kind == SequenceKind::kList) ||
                    (a.is_tuple() && b.is_tuple());
  if (!fits) {
    unsupported(BinaryOp::kAdd, left, right);
  }
  in.budget().charge_steps(a.items.size() + b.items.size());
  check_size(a.items.size() + b.items.size(), 1);
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_sequence(a.is_tuple() ? SequenceKind::kTuple : SequenceKind::kList, std::move(items));
}

bool less_sequences(const std::vector<Value>& a, const std::vector<Value>& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!equals(a[i], b[i])) {
      return less_than(a[i], b[i]);
    }
  }
  return a.size() < b.size();
}

// Orders NaN as Python does: every comparison with it is false.
template <typename T>
bool ordered_numbers(CompareOp op, T x, T y) {
  switch (op) {
    case CompareOp::kLt:
      return x < y;
    case CompareOp::kLe:
      return x <= y;
    case CompareOp::kGt:
      return x > y;
    default:
      return x >= y;
  }
}

bool ordered(CompareOp op, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  if (is_number(a) && is_number(b)) {
    if (const auto x = a.as_int(), y = b.as_int(); x && y) {
      return ordered_numbers(op, *x, *y);
    }
    return ordered_numbers(op, to_double(a), to_double(b));
  }
  switch (op) {
    case CompareOp::kLt:
      return less_than(a, b);
    case CompareOp::kGt:
      return less_than(b, a);
    case CompareOp::kLe:
      return less_than(a, b) || equals(a, b);
    default:
      return less_than(b, a) || equals(a, b);
  }
}

}  // namespace

void require_defined(const Value& value) {
  const auto* undefined = value.get<Undefined>();
  if (undefined == nullptr) {
    return;
  }
  fail("{}", undefined->why ? *undefined->why : "the value is undefined");
}

double to_double(const Value& value) {
  if (const auto* d = value.get<double>()) {
    return *d;
  }
  const auto i = value.as_int();
  if (!i) {
    fail("must be real number, not {}", type_name(value));
  }
  return static_cast<double>(*i);
}

Value binary_operation(Interpreter& in, BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::kMod && a.as_text() != nullptr) {
    return Value::text(printf_format(in, *a.as_text(), b));
  }
  require_defined(a);
  require_defined(b);
  if (const auto x = a.as_int(), y = b.as_int(); x && y) {
    return int_operation(op, *x, *y);
  }
  if (is_number(a) && is_number(b)) {
    return Value::real(float_operation(op, to_double(a), to_double(b)));
  }
  if (op == BinaryOp::kAdd) {
    if (a.as_text() != nullptr && b.as_text() != nullptr) {
      return add_texts(in, *a.as_text(), *b.as_text());
    }
    if (a.as_sequence() != nullptr && b.as_sequence() != nullptr) {
      return add_sequences(in, *a.as_sequence(), *b.as_sequence(), a, b);
    }
    if (a.as_text() != nullptr) {
      fail("can only concatenate str (not \"{}\") to str", type_name(b));
    }
  }
  if (op == BinaryOp::kMul) {
    if (const auto n = b.as_int(); n && repeatable(a)) {
      return repeat(in, a, *n);
    }
    if (const auto n = a.as_int(); n && repeatable(b)) {
      return repeat(in, b, *n);
    }
  }
  unsupported(op, a, b);
}

bool less_than(const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  if (const auto x = a.as_int(), y = b.as_int(); x && y) {
    return *x < *y;
  }
  if (is_number(a) && is_number(b)) {
    return to_double(a) < to_double(b);
  }
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    return a.as_text()->view() < b.as_text()->view();
  }
  const Sequence* x = a.as_sequence();
  const Sequence* y = b.as_sequence();
  if (x != nullptr && y != nullptr) {
    const bool lists = x->kind == SequenceKind::kList && y->kind == SequenceKind::kList;
    if (lists || (x->is_tuple() && y->is_tuple())) {
      return less_sequences(x->items, y->items);
    }
  }
  fail("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

bool compare_values(Interpreter& in, CompareOp op, const Value& a, const Value& b) {
  in.budget().charge_steps(std::min(weight_of(a), weight_of(b)));
  switch (op) {
    case CompareOp::kEq:
      return equals(a, b);
    case CompareOp::kNe:
      return !equals(a, b);
    case CompareOp::kIn:
      return contains(in, b, a);
    case CompareOp::kNotIn:
      return !contains(in, b, a);
    default:
      return ordered(op, a, b);
  }
}

bool contains(Interpreter& in, const Value& container, const Value& item) {
  if (const Text* text = container.as_text()) {
    const Text* needle = item.as_text();
    if (needle == nullptr) {
      fail("'in <string>' requires string as left operand, not {}", type_name(item));
    }
    in.budget().charge_steps(text->size() / 64);
    return text->view().find(needle->view()) != std::string_view::npos;
  }
  if (const Dict* dict = container.as_dict()) {
    return dict->find(item) != nullptr;
  }
  if (container.is_undefined()) {
    return false;
  }
  const Sequence* sequence = container.as_sequence();
  if (sequence == nullptr) {
    fail("argument of type '{}' is not iterable", type_name(container));
  }
  in.budget().charge_steps(sequence->items.size());
  if (sequence->kind == SequenceKind::kGenerator && std::exchange(sequence->consumed, true)) {
    return false;
  }
  return std::any_of(sequence->items.begin(), sequence->items.end(), [&item](const Value& other) {
    return equals(item, other);
  });
}

Value signed_value(bool negative, const Value& value) {
  require_defined(value);
  if (const auto i = value.as_int()) {
    return negative ? int_operation(BinaryOp::kSub, 0, *i) : Value::integer(*i);
  }
  if (const auto* d = value.get<double>()) {
    return Value::real(negative ? -*d : *d);
  }
  fail("bad operand type for unary {}: '{}'", negative ? "-" : "+", type_name(value));
}

}  // namespace headrace::jinja
