#include "chat/interpreter.h"

#include <algorithm>

#include "chat/filters.h"
#include "chat/format_value.h"
#include "chat/html.h"
#include "chat/interpreter_depth.h"
#include "chat/methods.h"
#include "chat/objects.h"
#include "chat/operators.h"
#include "chat/template_tests.h"

namespace headrace::jinja {

void take_no_arguments(CallArgs& args, std::string_view function) {
  const ArgReader none(args, function, {});
}

ArgReader::ArgReader(CallArgs& args,
                     std::string_view function,
                     std::initializer_list<std::string_view> names,
                     std::size_t required)
    : function_(function), values_(names.size()) {
  if (args.positional.size() > names.size()) {
    fail("{}() takes at most {} arguments ({} given)",
         function,
         names.size(),
         args.positional.size());
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) {
    values_[i] = {true, args.positional[i]};
  }
  for (const auto& [name, value] : args.named) {
    const auto* const it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      fail("{}() got an unexpected keyword argument '{}'", function, name);
    }
    Slot& slot = values_[static_cast<std::size_t>(it - names.begin())];
    if (slot.is_given) {
      fail("{}() got multiple values for argument '{}'", function, name);
    }
    slot = {true, value};
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!values_[i].is_given) {
      fail("{}() misses its argument '{}'", function, names.begin()[i]);
    }
  }
}

Int ArgReader::integer(std::size_t i, Int otherwise) const {
  if (!values_[i].is_given) {
    return otherwise;
  }
  require_defined(values_[i].value);
  const auto value = values_[i].value.as_int();
  if (!value) {
    fail("{}(): '{}' object cannot be interpreted as an integer",
         function_,
         type_name(values_[i].value));
  }
  return *value;
}

bool ArgReader::flag(std::size_t i, bool otherwise) const {
  return values_[i].is_given ? truthy(values_[i].value) : otherwise;
}

const Text* ArgReader::text(std::size_t i) const {
  if (!values_[i].is_given || values_[i].value.is_none()) {
    return nullptr;
  }
  require_defined(values_[i].value);
  const Text* text = values_[i].value.as_text();
  if (text == nullptr) {
    fail("{}(): a string is required, not {}", function_, type_name(values_[i].value));
  }
  return text;
}

void Scope::set(int name, Value value) {
  for (auto& [id, old] : vars) {
    if (id == name) {
      old = std::move(value);
      return;
    }
  }
  vars.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(std::shared_ptr<const Program> program, Settings settings)
    : program_(std::move(program)),
      settings_(std::move(settings)),
      root_(std::make_shared<Scope>()),
      scope_(root_),
      globals_(program_->names.size()),
      has_global_(program_->names.size(), 0) {
  const auto loop = program_->name_ids.find("loop");
  if (loop != program_->name_ids.end()) {
    loop_name_ = loop->second;
  }
}

// Macros hold the scopes they were made in, which may hold the macros; namespaces may hold each
// other.
Interpreter::~Interpreter() {
  for (const ScopePtr& captured : captured_) {
    for (Scope* scope = captured.get(); scope != nullptr; scope = scope->parent.get()) {
      scope->vars.clear();
    }
  }
  for (const ObjectPtr& object : kept_) {
    if (auto* ns = dynamic_cast<NamespaceObject*>(object.get())) {
      ns->clear();
    }
  }
}

void Interpreter::set_global(std::string_view name, Value value) {
  const auto it = program_->name_ids.find(std::string(name));
  // no template can ask for it
  if (it == program_->name_ids.end()) {
    return;
  }
  globals_[static_cast<std::size_t>(it->second)] = std::move(value);
  has_global_[static_cast<std::size_t>(it->second)] = 1;
}

Text Interpreter::render() {
  TextBuilder out(settings_.budget);
  out_ = &out;
  exec(program_->body);
  out_ = nullptr;
  return out.take();
}

Text Interpreter::str(const Value& value) {
  if (const Text* text = value.as_text()) {
    return *text;
  }
  TextBuilder out(settings_.budget);
  append_str(out, value);
  return out.take();
}

Value Interpreter::make_text(std::string_view bytes, bool trusted) {
  settings_.budget.charge_bytes(bytes.size());
  return Value::text(Text(bytes, trusted));
}

Value Interpreter::lookup(int name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [id, value] : scope->vars) {
      if (id == name) {
        return value;
      }
    }
  }
  const auto i = static_cast<std::size_t>(name);
  if (has_global_[i] != 0) {
    return globals_[i];
  }
  return Value::undefined(fmt::format("'{}' is undefined", program_->names[i]));
}

Value Interpreter::eval(const Expr& expr) {
  const Depth depth(*this);
  line_ = expr.line;
  settings_.budget.charge_steps(1);
  return std::visit([this](const auto& node) { return eval_node(node); }, expr.node);
}

Value Interpreter::eval_node(const SequenceExpr& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const Expr* item : node.items) {
    items.push_back(eval(*item));
  }
  return make_sequence(node.tuple ? SequenceKind::kTuple : SequenceKind::kList, std::move(items));
}

Value Interpreter::eval_node(const DictExpr& node) {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : node.items) {
    const Value evaluated = eval(*key);
    dict->set(evaluated, eval(*value));
  }
  return Value::dict(std::move(dict));
}

Value Interpreter::eval_node(const SignExpr& node) {
  return signed_value(node.negative, eval(*node.operand));
}

Value Interpreter::eval_node(const NotExpr& node) {
  return Value::boolean(!truthy(eval(*node.operand)));
}

Value Interpreter::eval_node(const BinaryExpr& node) {
  const Value left = eval(*node.left);
  const Value right = eval(*node.right);
  return binary_operation(*this, node.op, left, right);
}

Value Interpreter::eval_node(const LogicExpr& node) {
  Value left = eval(*node.left);
  return truthy(left) == node.is_and ? eval(*node.right) : left;
}

Value Interpreter::eval_node(const CompareExpr& node) {
  Value left = eval(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = eval(*operand);
    if (!compare_values(*this, op, left, right)) {
      return Value::boolean(false);
    }
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::eval_node(const ConcatExpr& node) {
  Value first = eval(*node.parts.front());
  Text out = str(first).with_markup(false);
  first = Value();
  for (std::size_t i = 1; i < node.parts.size(); ++i) {
    out = out.append(str(eval(*node.parts[i])), budget());
  }
  return Value::text(out.with_markup(false));
}

Value Interpreter::eval_node(const CondExpr& node) {
  if (truthy(eval(*node.test))) {
    return eval(*node.then);
  }
  if (node.otherwise != nullptr) {
    return eval(*node.otherwise);
  }
  return Value::undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::eval_node(const AttributeExpr& node) {
  return attribute(eval(*node.object), node.name);
}

Value Interpreter::eval_node(const ItemExpr& node) {
  const Value object = eval(*node.object);
  if (const auto* range = std::get_if<SliceExpr>(&node.key->node)) {
    return slice(object, *range);
  }
  return item(object, eval(*node.key));
}

Value Interpreter::eval_node(const SliceExpr& /*node*/) {
  fail("a slice among several subscripts");
}

CallArgs Interpreter::arguments(const Arguments& args) {
  CallArgs out;
  out.positional.reserve(args.positional.size());
  for (const Expr* expr : args.positional) {
    out.positional.push_back(eval(*expr));
  }
  for (const auto& [name, expr] : args.named) {
    out.named.emplace_back(name, eval(*expr));
  }
  if (args.star != nullptr) {
    for (Value& value : iterate(eval(*args.star))) {
      out.positional.push_back(std::move(value));
    }
  }
  if (args.double_star != nullptr) {
    const Value extra = eval(*args.double_star);
    const Dict* dict = extra.as_dict();
    if (dict == nullptr) {
      fail("argument after ** must be a mapping, not {}", type_name(extra));
    }
    for (const auto& [key, value] : dict->entries()) {
      if (key.as_text() == nullptr) {
        fail("keywords must be strings");
      }
      const std::string name = key.as_text()->str();
      const bool repeated = std::any_of(
          out.named.begin(), out.named.end(), [&name](const auto& e) { return e.first == name; });
      if (repeated) {
        fail("got multiple values for keyword argument '{}'", name);
      }
      out.named.emplace_back(name, value);
    }
  }
  return out;
}

Value Interpreter::eval_node(const CallExpr& node) { return call_with(node, nullptr); }

Value Interpreter::call_with(const CallExpr& node, const Value* caller) {
  const int call_line = line_;
  const Value callee = eval(*node.callee);
  CallArgs args = arguments(node.arguments);
  if (caller != nullptr) {
    args.named.emplace_back("caller", *caller);
  }
  line_ = call_line;
  return call(callee, args);
}

Value Interpreter::call(const Value& callee, CallArgs& args) {
  require_defined(callee);
  Object* object = callee.as_object();
  if (object == nullptr || !object->callable()) {
    fail("'{}' object is not callable", type_name(callee));
  }
  return object->call(*this, args);
}

Value Interpreter::eval_node(const FilterExpr& node) { return filtered(node, Value()); }

// `innermost` stands where the chain has no input: the text of a filter or set block.
Value Interpreter::filtered(const FilterExpr& node, const Value& innermost) {
  const Depth depth(*this);
  const int filter_line = line_;
  Value input = innermost;
  if (node.input != nullptr) {
    const auto* chained = std::get_if<FilterExpr>(&node.input->node);
    input = chained != nullptr ? filtered(*chained, innermost) : eval(*node.input);
  }
  if (node.filter == nullptr) {
    fail("No filter named '{}'.", node.name);
  }
  CallArgs args = arguments(node.arguments);
  line_ = filter_line;
  return node.filter->apply(*this, input, args);
}

Value Interpreter::apply_filter(std::string_view name, const Value& input, CallArgs& args) {
  const FilterEntry* filter = find_filter(name);
  if (filter == nullptr) {
    fail("No filter named '{}'.", name);
  }
  settings_.budget.charge_steps(1);
  return filter->apply(*this, input, args);
}

Value Interpreter::eval_node(const TestExpr& node) {
  const Value input = eval(*node.input);
  if (node.test == nullptr) {
    fail("No test named '{}'.", node.name);
  }
  CallArgs args = arguments(node.arguments);
  return Value::boolean(node.test->apply(*this, input, args));
}

bool Interpreter::apply_test(std::string_view name, const Value& input, CallArgs& args) {
  const TestEntry* test = find_test(name);
  if (test == nullptr) {
    fail("No test named '{}'.", name);
  }
  settings_.budget.charge_steps(1);
  return test->apply(*this, input, args);
}

}  // namespace headrace::jinja
