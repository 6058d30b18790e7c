// Running statements: output, branches, assignments, loops, macros.
#include <algorithm>

#include "chat/format_value.h"
#include "chat/html.h"
#include "chat/interpreter.h"
#include "chat/interpreter_depth.h"
#include "chat/objects.h"
#include "chat/operators.h"

namespace headrace::jinja {

Interpreter::Flow Interpreter::exec(const Body& body) {
  const Depth depth(*this);
  for (const Stmt* stmt : body) {
    line_ = stmt->line;
    settings_.budget.charge_steps(1);
    const Flow flow = std::visit([this](const auto& node) { return exec_node(node); }, stmt->node);
    if (flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

void Interpreter::emit(const Value& value) {
  if (autoescape_ && !value.is_undefined()) {
    out_->add(escape_html(settings_.budget, str(value)));
  } else {
    append_str(*out_, value);
  }
  if (out_->size() > settings_.max_output_bytes) {
    fail_budget("the rendered text is longer than {} bytes", settings_.max_output_bytes);
  }
}

Interpreter::Flow Interpreter::exec_node(const OutputStmt& node) {
  for (const Expr* part : node.parts) {
    if (const auto* literal = std::get_if<LiteralExpr>(&part->node)) {
      append_str(*out_, literal->value);
    } else {
      emit(eval(*part));
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_node(const IfStmt& node) {
  for (const auto& [test, body] : node.branches) {
    if (truthy(eval(*test))) {
      return exec(body);
    }
  }
  return exec(node.otherwise);
}

Interpreter::Flow Interpreter::exec_node(const SetStmt& node) {
  assign(node.target, eval(*node.value));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_node(const SetBlockStmt& node) {
  auto scope = std::make_shared<Scope>();
  scope->parent = scope_;
  Text text;
  {
    Capture capture(*this, std::move(scope));
    const Flow flow = exec(node.body);
    if (flow != Flow::kNext) {
      return flow;
    }
    text = capture.take();
  }
  Value value = Value::text(text.with_markup(autoescape_));
  if (node.filter != nullptr) {
    value = filtered(std::get<FilterExpr>(node.filter->node), value);
  }
  assign(node.target, value);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_node(const FilterStmt& node) {
  auto scope = std::make_shared<Scope>();
  scope->parent = scope_;
  Text text;
  {
    Capture capture(*this, std::move(scope));
    const Flow flow = exec(node.body);
    if (flow != Flow::kNext) {
      return flow;
    }
    text = capture.take();
  }
  emit(filtered(std::get<FilterExpr>(node.filter->node), Value::text(text)));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::in_scope(const Body& body, ScopePtr parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = std::move(parent);
  const ScopePtr outer = std::exchange(scope_, std::move(scope));
  const Flow flow = exec(body);
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::exec_node(const WithStmt& node) {
  auto scope = std::make_shared<Scope>();
  scope->parent = scope_;
  std::vector<Value> values;
  for (const Expr* expr : node.values) {
    values.push_back(eval(*expr));
  }
  const ScopePtr outer = std::exchange(scope_, std::move(scope));
  for (std::size_t i = 0; i < values.size(); ++i) {
    assign(node.targets[i], values[i]);
  }
  const Flow flow = exec(node.body);
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::exec_node(const ScopeStmt& node) {
  return in_scope(node.body, scope_);
}

Interpreter::Flow Interpreter::exec_node(const BlockStmt& node) {
  return in_scope(node.body, node.scoped ? scope_ : root_);
}

Interpreter::Flow Interpreter::exec_node(const AutoescapeStmt& node) {
  const bool outer = std::exchange(autoescape_, truthy(eval(*node.enabled)));
  const Flow flow = in_scope(node.body, scope_);
  autoescape_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::exec_node(const UnavailableStmt& node) {
  fail("'{}': no other templates can be loaded here", node.tag);
}

void Interpreter::assign(const Target& target, const Value& value) {
  switch (target.kind) {
    case Target::Kind::kName:
      scope_->set(target.name, value);
      return;
    case Target::Kind::kNamespace: {
      const Value object = lookup(target.name);
      auto* ns = dynamic_cast<NamespaceObject*>(object.as_object());
      if (ns == nullptr) {
        fail("cannot assign attribute on non-namespace object");
      }
      ns->set(target.attribute, value);
      return;
    }
    case Target::Kind::kTuple:
      break;
  }
  require_defined(value);
  const std::vector<Value> items = iterate(value);
  if (items.size() < target.items.size()) {
    fail("not enough values to unpack (expected {}, got {})", target.items.size(), items.size());
  }
  if (items.size() > target.items.size()) {
    fail("too many values to unpack (expected {})", target.items.size());
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    assign(target.items[i], items[i]);
  }
}

Interpreter::Flow Interpreter::exec_node(const ForStmt& node) {
  const Value iterable = eval(*node.iterable);
  if (!node.recursive) {
    return loop(node, iterable, scope_, 0);
  }
  const Text text = run_loop(node, iterable, scope_, 0);
  out_->add(text);
  return Flow::kNext;
}

Text Interpreter::run_loop(const ForStmt& node,
                           const Value& iterable,
                           const ScopePtr& outer,
                           int depth0) {
  const Depth depth(*this);
  Capture capture(*this, outer);
  loop(node, iterable, outer, depth0);
  return capture.take();
}

bool Interpreter::loop_test(const ForStmt& node, const Value& item, const ScopePtr& outer) {
  auto scope = std::make_shared<Scope>();
  scope->parent = outer;
  const ScopePtr current = std::exchange(scope_, std::move(scope));
  assign(node.target, item);
  const bool passed = truthy(eval(*node.test));
  scope_ = current;
  return passed;
}

// One scope an iteration, reused while nothing holds on to it.
Interpreter::Flow Interpreter::loop(const ForStmt& node,
                                    const Value& iterable,
                                    const ScopePtr& outer,
                                    int depth0) {
  const auto state = std::make_shared<LoopState>(node, iterate(iterable), outer, depth0);
  const ScopePtr before = scope_;
  ScopePtr scope;
  Flow flow = Flow::kNext;
  bool ran = false;
  while (state->advance(*this)) {
    ran = true;
    if (scope.use_count() == 1) {
      scope->vars.clear();
    } else {
      scope = std::make_shared<Scope>();
      scope->parent = outer;
    }
    scope_ = scope;
    if (loop_name_ >= 0) {
      scope->set(loop_name_, Value::object(state));
    }
    assign(node.target, state->current());
    flow = exec(node.body);
    scope_ = before;
    if (flow == Flow::kBreak) {
      break;
    }
  }
  state->finish();
  if (ran || node.otherwise.empty()) {
    return Flow::kNext;
  }
  return in_scope(node.otherwise, outer);
}

Value Interpreter::make_macro(const MacroSpec& spec) {
  if (captured_.empty() || captured_.back() != scope_) {
    captured_.push_back(scope_);
  }
  return Value::object(std::make_shared<MacroObject>(spec, scope_));
}

Interpreter::Flow Interpreter::exec_node(const MacroStmt& node) {
  scope_->set(node.name, make_macro(node.macro));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_node(const CallStmt& node) {
  const Value caller = make_macro(node.caller);
  emit(call_with(std::get<CallExpr>(node.call->node), &caller));
  return Flow::kNext;
}

namespace {

// Takes a named argument out of the call; false if it is not there.
bool take_named(CallArgs& args, std::string_view name, Value& out) {
  const auto it = std::find_if(args.named.begin(), args.named.end(), [name](const auto& entry) {
    return entry.first == name;
  });
  if (it == args.named.end()) {
    return false;
  }
  out = std::move(it->second);
  args.named.erase(it);
  return true;
}

}  // namespace

Text Interpreter::call_macro(MacroObject& macro, CallArgs& args) {
  const Depth depth(*this);
  const MacroSpec& spec = macro.spec();
  auto scope = std::make_shared<Scope>();
  scope->parent = macro.closure();
  Capture capture(*this, scope);
  const std::vector<std::size_t> missing = bind_parameters(spec, args, *scope);
  bind_extras(spec, args, *scope);
  const std::size_t first_default = spec.parameters.size() - spec.defaults.size();
  for (const std::size_t i : missing) {
    scope->set(spec.parameters[i],
               i >= first_default ? eval(*spec.defaults[i - first_default])
                                  : Value::undefined(fmt::format("parameter '{}' was not provided",
                                                                 spec.parameter_names[i])));
  }
  exec(spec.body);
  return capture.take();
}

std::vector<std::size_t> Interpreter::bind_parameters(const MacroSpec& spec,
                                                      CallArgs& args,
                                                      Scope& scope) {
  std::vector<std::size_t> missing;
  Value named;
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    if (i < args.positional.size()) {
      scope.set(spec.parameters[i], args.positional[i]);
    } else if (take_named(args, spec.parameter_names[i], named)) {
      scope.set(spec.parameters[i], named);
    } else {
      missing.push_back(i);
    }
  }
  return missing;
}

// caller, kwargs and varargs, where the body asks for them; else what is left over is an error.
void Interpreter::bind_extras(const MacroSpec& spec, CallArgs& args, Scope& scope) {
  const auto set = [&](const char* name, Value value) {
    scope.set(program_->name_ids.at(name), std::move(value));
  };
  if (spec.uses_caller) {
    Value caller = Value::undefined("No caller defined");
    take_named(args, "caller", caller);
    set("caller", caller);
  }
  if (spec.uses_kwargs) {
    auto kwargs = std::make_shared<Dict>();
    for (const auto& [name, value] : args.named) {
      kwargs->set(make_text(name, false), value);
    }
    set("kwargs", Value::dict(std::move(kwargs)));
  } else if (!args.named.empty()) {
    fail("macro '{}' takes no keyword argument '{}'", spec.name, args.named.front().first);
  }
  const std::size_t taken = std::min(spec.parameters.size(), args.positional.size());
  if (spec.uses_varargs) {
    const auto rest = args.positional.begin() + static_cast<std::ptrdiff_t>(taken);
    set("varargs", make_tuple({rest, args.positional.end()}));
  } else if (args.positional.size() > taken) {
    fail("macro '{}' takes not more than {} argument(s)", spec.name, spec.parameters.size());
  }
}

}  // namespace headrace::jinja
