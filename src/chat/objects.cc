#include "chat/objects.h"

#include <algorithm>

#include "chat/literals.h"
#include "chat/methods.h"

namespace headrace::jinja {
namespace {

Value bound(Object& self, std::string_view name, NativeMethod method) {
  return Value::object(
      std::make_shared<BoundMethod>(Value::object(self.shared_from_this()), name, method));
}

Value text_value(std::string_view text) { return Value::text(Text(text, true)); }

}  // namespace

std::optional<Value> NamespaceObject::attribute(Interpreter& /*in*/, std::string_view name) {
  const Value* value = values_->find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  return *value;
}

void NamespaceObject::set(const std::string& name, Value value) {
  values_->set(Value::text(Text(name, true)), std::move(value));
}

std::optional<Value> MacroObject::attribute(Interpreter& /*in*/, std::string_view name) {
  if (name == "name") {
    return spec_->name.empty() ? Value::none() : text_value(spec_->name);
  }
  if (name == "caller") {
    return Value::boolean(spec_->uses_caller);
  }
  if (name == "catch_kwargs") {
    return Value::boolean(spec_->uses_kwargs);
  }
  if (name == "catch_varargs") {
    return Value::boolean(spec_->uses_varargs);
  }
  if (name != "arguments") {
    return std::nullopt;
  }
  std::vector<Value> names;
  for (const std::string& parameter : spec_->parameter_names) {
    names.push_back(text_value(parameter));
  }
  return make_tuple(std::move(names));
}

Value MacroObject::call(Interpreter& in, CallArgs& args) {
  return Value::text(in.call_macro(*this, args));
}

CyclerObject::CyclerObject(std::vector<Value> items) : items_(std::move(items)) {
  for (const Value& item : items_) {
    depth_ = std::max(depth_, 1 + depth_of(item));
  }
}

Value CyclerObject::next() {
  Value value = items_[at_];
  at_ = (at_ + 1) % items_.size();
  return value;
}

Value JoinerObject::call(Interpreter& /*in*/, CallArgs& args) {
  if (!args.positional.empty() || !args.named.empty()) {
    fail("a joiner takes no arguments");
  }
  if (std::exchange(used_, true)) {
    return separator_;
  }
  return text_value("");
}

std::optional<Value> JoinerObject::attribute(Interpreter& /*in*/, std::string_view name) {
  if (name == "sep") {
    return separator_;
  }
  if (name == "used") {
    return Value::boolean(used_);
  }
  return std::nullopt;
}

LoopState::LoopState(const ForStmt& node, std::vector<Value> items, ScopePtr outer, int depth0)
    : node_(&node), items_(std::move(items)), outer_(std::move(outer)), depth0_(depth0) {}

bool LoopState::peek(Interpreter& in) {
  if (peeked_) {
    return true;
  }
  for (; next_ < items_.size(); ++next_) {
    if (node_->test == nullptr || counted_ || in.loop_test(*node_, items_[next_], outer_)) {
      peeked_ = true;
      return true;
    }
  }
  return false;
}

bool LoopState::advance(Interpreter& in) {
  in.budget().charge_steps(1);
  if (!peek(in)) {
    return false;
  }
  peeked_ = false;
  ++index0_;
  previous_ = std::move(current_);
  current_ = items_[next_++];
  return true;
}

// With a filter in the loop line the rest has to be filtered to be counted, as Python does.
std::size_t LoopState::count(Interpreter& in) {
  if (node_->test == nullptr || counted_) {
    return items_.size();
  }
  std::vector<Value> rest;
  for (; next_ < items_.size(); ++next_) {
    const bool passed = peeked_ || in.loop_test(*node_, items_[next_], outer_);
    peeked_ = false;
    if (passed) {
      rest.push_back(items_[next_]);
    }
  }
  const std::size_t done = static_cast<std::size_t>(index0_ + 1);
  items_.assign(done, Value());
  items_.insert(items_.end(), rest.begin(), rest.end());
  next_ = done;
  counted_ = true;
  return items_.size();
}

Value LoopState::call(Interpreter& in, CallArgs& args) {
  if (!node_->recursive) {
    fail("The loop must have the 'recursive' marker to be called recursively.");
  }
  ArgReader reader(args, "loop", {"iterable"}, 1);
  return Value::text(in.run_loop(*node_, *reader.get(0), outer_, depth0_ + 1));
}

std::string LoopState::describe() const {
  return fmt::format("<LoopContext {}/{}>", int_to_string(index0_ + 1), items_.size());
}

bool LoopState::changed(std::vector<Value> values) {
  const bool same = has_changed_value_ && values.size() == changed_value_.size() &&
                    std::equal(values.begin(), values.end(), changed_value_.begin(), equals);
  has_changed_value_ = true;
  changed_value_ = std::move(values);
  return !same;
}

Value LoopState::cycle(const std::vector<Value>& values) const {
  if (values.empty()) {
    fail("no items for cycling given");
  }
  return values[static_cast<std::size_t>(index0_) % values.size()];
}

std::optional<Value> LoopState::attribute(Interpreter& in, std::string_view name) {
  if (name == "index0") {
    return Value::integer(index0_);
  }
  if (name == "index") {
    return Value::integer(index0_ + 1);
  }
  if (name == "first") {
    return Value::boolean(index0_ == 0);
  }
  if (name == "last") {
    return Value::boolean(!peek(in));
  }
  if (name == "length") {
    return Value::integer(static_cast<Int>(count(in)));
  }
  if (name == "revindex0") {
    return Value::integer(static_cast<Int>(count(in)) - index0_ - 1);
  }
  if (name == "revindex") {
    return Value::integer(static_cast<Int>(count(in)) - index0_);
  }
  if (name == "depth") {
    return Value::integer(depth0_ + 1);
  }
  if (name == "depth0") {
    return Value::integer(depth0_);
  }
  if (name == "previtem") {
    return index0_ == 0 ? Value::undefined("there is no previous item") : previous_;
  }
  if (name == "nextitem") {
    return peek(in) ? items_[next_] : Value::undefined("there is no next item");
  }
  if (name == "cycle") {
    return bound(*this, "cycle", [](Interpreter&, const Value& self, CallArgs& args) {
      return dynamic_cast<LoopState&>(*self.as_object()).cycle(args.positional);
    });
  }
  if (name == "changed") {
    return bound(*this, "changed", [](Interpreter&, const Value& self, CallArgs& args) {
      return Value::boolean(dynamic_cast<LoopState&>(*self.as_object()).changed(args.positional));
    });
  }
  return std::nullopt;
}

std::optional<Value> CyclerObject::attribute(Interpreter& /*in*/, std::string_view name) {
  if (name == "current") {
    return items_[at_];
  }
  if (name == "pos") {
    return Value::integer(static_cast<Int>(at_));
  }
  if (name == "items") {
    return make_tuple(items_);
  }
  if (name == "next") {
    return bound(*this, "next", [](Interpreter&, const Value& self, CallArgs&) {
      return dynamic_cast<CyclerObject&>(*self.as_object()).next();
    });
  }
  if (name == "reset") {
    return bound(*this, "reset", [](Interpreter&, const Value& self, CallArgs&) {
      dynamic_cast<CyclerObject&>(*self.as_object()).reset();
      return Value::none();
    });
  }
  return std::nullopt;
}

}  // namespace headrace::jinja
