// The functions every template knows: range, dict, namespace, cycler, joiner, raise_exception,
// strftime_now.
#include <array>

#include "chat/methods.h"
#include "chat/operators.h"

namespace headrace::jinja {
namespace {

constexpr Int kMaxRange = 100'000;

Value range(Interpreter& in, CallArgs& args) {
  if (!args.named.empty()) {
    fail("range() takes no keyword arguments");
  }
  const ArgReader reader(args, "range", {"start", "stop", "step"}, 1);
  const bool one = reader.get(1) == nullptr;
  const Int start = one ? 0 : reader.integer(0, 0);
  const Int stop = one ? reader.integer(0, 0) : reader.integer(1, 0);
  const Int step = reader.integer(2, 1);
  if (step == 0) {
    fail("range() arg 3 must not be zero");
  }
  const Int distance = step > 0 ? stop - start : start - stop;
  const Int stride = step > 0 ? step : -step;
  const Int count = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  if (count > kMaxRange) {
    fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  }
  in.budget().charge_steps(static_cast<std::size_t>(count) / 4);
  std::vector<Value> items;
  for (Int i = 0; i < count; ++i) {
    items.push_back(Value::integer(start + i * step));
  }
  auto out = std::make_shared<Sequence>(SequenceKind::kRange, std::move(items));
  out->range[0] = start;
  out->range[1] = stop;
  out->range[2] = step;
  return Value::sequence(std::move(out));
}

void add_entries(Interpreter& in, const Value& from, Dict& out) {
  require_defined(from);
  if (const Dict* dict = from.as_dict()) {
    for (const auto& [key, value] : dict->entries()) {
      out.set(key, value);
    }
    return;
  }
  for (const Value& pair : in.iterate(from)) {
    const std::vector<Value> two = in.iterate(pair);
    if (two.size() != 2) {
      fail("dictionary update sequence element has length {}; 2 is required", two.size());
    }
    out.set(two[0], two[1]);
  }
}

// dict(mapping or pairs, name=value ...).
std::shared_ptr<Dict> make_dict(Interpreter& in, CallArgs& args) {
  auto out = std::make_shared<Dict>();
  if (args.positional.size() > 1) {
    fail("dict expected at most 1 argument, got {}", args.positional.size());
  }
  if (!args.positional.empty()) {
    add_entries(in, args.positional[0], *out);
  }
  for (const auto& [name, value] : args.named) {
    out->set(in.make_text(name, false), value);
  }
  return out;
}

Value dict(Interpreter& in, CallArgs& args) { return Value::dict(make_dict(in, args)); }

Value make_namespace(Interpreter& in, CallArgs& args) {
  const auto object = std::make_shared<NamespaceObject>(make_dict(in, args));
  in.keep(object);
  return Value::object(object);
}

Value cycler(Interpreter& /*in*/, CallArgs& args) {
  if (!args.named.empty()) {
    fail("cycler() takes no keyword arguments");
  }
  if (args.positional.empty()) {
    fail("at least one item has to be provided");
  }
  return Value::object(std::make_shared<CyclerObject>(args.positional));
}

Value joiner(Interpreter& in, CallArgs& args) {
  const ArgReader reader(args, "joiner", {"sep"});
  return Value::object(std::make_shared<JoinerObject>(reader.value(0, in.make_text(", ", true))));
}

Value raise_exception(Interpreter& in, CallArgs& args) {
  const ArgReader reader(args, "raise_exception", {"message"}, 1);
  throw TemplateFailure(TemplateFailure::Kind::kRaised, in.str(*reader.get(0)).str());
}

Value strftime_now(Interpreter& in, CallArgs& args) {
  const ArgReader reader(args, "strftime_now", {"format"}, 1);
  const Text* format = reader.text(0);
  if (format == nullptr) {
    fail("strftime_now takes a string");
  }
  if (format->size() > 1000) {
    fail_budget("strftime_now: the format is too long");
  }
  const std::tm time = in.local_time();
  const std::string spec = format->str() + " ";  // never empty, so that 0 means "does not fit"
  std::array<char, 16384> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), spec.c_str(), &time);
  if (size == 0) {
    fail("strftime_now: the result is too long");
  }
  return in.make_text({buffer.data(), size - 1}, format->empty() || format->trusted_at(0));
}

}  // namespace

void add_builtin_functions(Interpreter& in) {
  static constexpr std::pair<std::string_view, NativeFunction> kFunctions[] = {
      {"range", range},
      {"dict", dict},
      {"cycler", cycler},
      {"namespace", make_namespace},
      {"joiner", joiner},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  for (const auto& [name, function] : kFunctions) {
    in.set_global(name, Value::object(std::make_shared<FunctionObject>(name, function)));
  }
}

}  // namespace headrace::jinja
