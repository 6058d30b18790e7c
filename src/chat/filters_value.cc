// Filters on single values: numbers, defaults, JSON.
#include <array>
#include <cmath>

#include "chat/filters.h"
#include "chat/format_value.h"
#include "chat/json.h"
#include "chat/literals.h"
#include "chat/operators.h"

namespace headrace::jinja {
namespace {

Value absolute(Interpreter& in, const Value& input, CallArgs& args) {
  take_no_arguments(args, "abs");
  require_defined(input);
  if (const auto i = input.as_int()) {
    return *i < 0 ? signed_value(true, input) : Value::integer(*i);
  }
  if (const auto* d = input.get<double>()) {
    return Value::real(std::abs(*d));
  }
  static_cast<void>(in);
  fail("bad operand type for abs(): '{}'", type_name(input));
}

std::optional<Int> whole(double d) {
  if (!std::isfinite(d) || std::abs(d) > 1e37) {
    return std::nullopt;
  }
  return static_cast<Int>(d);
}

Value to_int(Interpreter& /*in*/, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "int", {"default", "base"});
  const Value otherwise = reader.value(0, Value::integer(0));
  require_defined(input);
  if (const auto i = input.as_int()) {
    return Value::integer(*i);
  }
  std::optional<Int> result;
  if (const auto* d = input.get<double>()) {
    if (std::isinf(*d)) {
      fail("cannot convert float infinity to integer");
    }
    result = whole(*d);
  } else if (const Text* text = input.as_text()) {
    const Int base = reader.integer(1, 10);
    if (base == 0 || (base >= 2 && base <= 36)) {
      result = parse_int(text->view(), static_cast<int>(base));
    }
    if (!result) {
      if (const auto parsed = parse_float(text->view())) {
        result = whole(*parsed);
      }
    }
  }
  return result ? Value::integer(*result) : otherwise;
}

Value to_float(Interpreter& /*in*/, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "float", {"default"});
  require_defined(input);
  if (const auto i = input.as_int()) {
    return Value::real(static_cast<double>(*i));
  }
  if (input.get<double>() != nullptr) {
    return input;
  }
  if (const Text* text = input.as_text()) {
    if (const auto d = parse_float(text->view())) {
      return Value::real(*d);
    }
  }
  return reader.value(0, Value::real(0.0));
}

double round_decimal(double value, int digits) {
  if (!std::isfinite(value) || digits > 300) {
    return value;
  }
  if (digits >= 0) {
    return *parse_float(format_double(value, 'f', digits, false));
  }
  const double scale = std::pow(10.0, -digits);
  return std::nearbyint(value / scale) * scale;
}

Value round_int(Int value, Int digits) {
  if (digits >= 0) {
    return Value::integer(value);
  }
  if (digits < -36) {
    return Value::integer(0);
  }
  Int scale = 1;
  for (Int i = 0; i < -digits; ++i) {
    scale *= 10;
  }
  Int low = value / scale * scale;
  if (low > value) {
    low -= scale;
  }
  const Int rest = value - low;
  const bool up = rest * 2 > scale || (rest * 2 == scale && low / scale % 2 != 0);
  return Value::integer(up ? low + scale : low);
}

Value rounded(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "round", {"precision", "method"});
  const std::string method = reader.text(1) != nullptr ? reader.text(1)->str() : "common";
  require_defined(input);
  const Int precision = reader.integer(0, 0);
  if (precision > 400 || precision < -400) {
    fail("round: the precision is out of range");
  }
  if (method == "common") {
    if (const auto i = input.as_int()) {
      return round_int(*i, precision);
    }
    return Value::real(round_decimal(to_double(input), static_cast<int>(precision)));
  }
  if (method != "ceil" && method != "floor") {
    fail("method must be common, ceil or floor");
  }
  const Value scale =
      binary_operation(in, BinaryOp::kPow, Value::integer(10), Value::integer(precision));
  const double scaled = to_double(binary_operation(in, BinaryOp::kMul, input, scale));
  const double cut = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::real(cut / to_double(scale));
}

Value filesizeformat(Interpreter& in, const Value& input, CallArgs& args) {
  static constexpr std::array<std::string_view, 8> kPrefixes = {
      "k", "M", "G", "T", "P", "E", "Z", "Y"};
  const ArgReader reader(args, "filesizeformat", {"binary"});
  const bool binary = reader.flag(0, false);
  const auto parsed =
      input.as_text() != nullptr ? parse_float(input.as_text()->view()) : to_double(input);
  if (!parsed) {
    fail("could not convert string to float");
  }
  const double bytes = *parsed;
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) {
    return in.make_text("1 Byte", true);
  }
  if (bytes < base) {
    return in.make_text(int_to_string(static_cast<Int>(bytes)) + " Bytes", true);
  }
  double unit = base;
  std::size_t i = 0;
  do {
    unit *= base;
  } while (bytes >= unit && ++i < kPrefixes.size());
  i = std::min(i, kPrefixes.size() - 1);
  unit = std::pow(base, static_cast<double>(i + 2));
  const std::string prefix = binary && i == 0 ? "K" : std::string(kPrefixes[i]);
  const std::string number = format_double(base * bytes / unit, 'f', 1, false);
  return in.make_text(number + " " + prefix + (binary ? "iB" : "B"), true);
}

Value defaulted(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "default", {"default_value", "boolean"});
  const bool absent = input.is_undefined() || (reader.flag(1, false) && !truthy(input));
  return absent ? reader.value(0, in.make_text("", true)) : input;
}

Text separator(const Value& value) {
  const Text* text = value.as_text();
  if (text == nullptr) {
    fail("tojson: a separator must be a string");
  }
  return *text;
}

void read_indent(Interpreter& in, const Value& value, JsonStyle& style) {
  style.indented = true;
  style.item_separator = Text::literal(",");
  if (const Text* text = value.as_text()) {
    style.indent = *text;
    return;
  }
  const auto width = value.as_int();
  if (!width) {
    fail("tojson: indent must be an integer or a string");
  }
  if (*width > 10'000) {
    fail_budget("tojson: indent is too wide");
  }
  TextBuilder spaces(in.budget());
  for (Int i = 0; i < *width; ++i) {
    spaces.add(" ", false);
  }
  style.indent = spaces.take();
}

Value tojson(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.item_separator = Text(", ", false);
  style.key_separator = Text(": ", false);
  style.ensure_ascii = reader.flag(0, false);
  if (const Value* width = reader.get(1); width != nullptr && !width->is_none()) {
    read_indent(in, *width, style);
  }
  if (const Value* pair = reader.get(2); pair != nullptr && !pair->is_none()) {
    const std::vector<Value> two = in.iterate(*pair);
    if (two.size() != 2) {
      fail("tojson: separators takes two strings");
    }
    style.item_separator = separator(two[0]);
    style.key_separator = separator(two[1]);
  }
  style.sort_keys = reader.flag(3, false);
  return Value::text(to_json(in.budget(), input, style));
}

Value pprint(Interpreter& in, const Value& input, CallArgs& args) {
  take_no_arguments(args, "pprint");
  TextBuilder out(in.budget());
  append_repr(out, input);
  return Value::text(out.take());
}

Value attr(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "attr", {"name"}, 1);
  if (reader.text(0) == nullptr) {
    fail("attribute name must be string");
  }
  require_defined(input);
  const Text name = *reader.text(0);
  // Attributes only, no items: a dict's keys are none.
  if (input.as_dict() != nullptr && input.as_dict()->find(name.view()) != nullptr) {
    return in.attribute(Value::dict(std::make_shared<Dict>()), name);
  }
  return in.attribute(input, name);
}

constexpr std::array kFilters = {
    FilterEntry{"abs", absolute},
    FilterEntry{"int", to_int},
    FilterEntry{"float", to_float},
    FilterEntry{"round", rounded},
    FilterEntry{"filesizeformat", filesizeformat},
    FilterEntry{"default", defaulted},
    FilterEntry{"d", defaulted},
    FilterEntry{"tojson", tojson},
    FilterEntry{"pprint", pprint},
    FilterEntry{"attr", attr},
};

}  // namespace

std::span<const FilterEntry> value_filters() { return kFilters; }

}  // namespace headrace::jinja
