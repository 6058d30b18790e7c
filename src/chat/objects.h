// The objects a template can hold: namespaces, macros, functions, bound methods, loops, cyclers and
// joiners. Part of one rendering, one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/interpreter.h"

namespace headrace::jinja {

class NamespaceObject final : public Object {
 public:
  explicit NamespaceObject(std::shared_ptr<Dict> values) : values_(std::move(values)) {}

  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  void set(const std::string& name, Value value);
  void clear() { values_ = std::make_shared<Dict>(); }
  const Dict& values() const { return *values_; }

 private:
  std::shared_ptr<Dict> values_;
};

using NativeFunction = Value (*)(Interpreter&, CallArgs&);

class FunctionObject final : public Object {
 public:
  FunctionObject(std::string_view name, NativeFunction function)
      : name_(name), function_(function) {}

  std::string_view type_name() const override { return "function"; }
  std::string describe() const override { return fmt::format("<function {}>", name_); }
  bool callable() const override { return true; }
  Value call(Interpreter& in, CallArgs& args) override { return function_(in, args); }

 private:
  std::string_view name_;
  NativeFunction function_;
};

using NativeMethod = Value (*)(Interpreter&, const Value& self, CallArgs&);

class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, std::string_view name, NativeMethod method)
      : self_(std::move(self)), name_(name), method_(method) {}

  std::string_view type_name() const override { return "builtin_function_or_method"; }
  std::string describe() const override { return fmt::format("<built-in method {}>", name_); }
  bool callable() const override { return true; }
  Value call(Interpreter& in, CallArgs& args) override { return method_(in, self_, args); }
  int depth() const override { return 1 + depth_of(self_); }

 private:
  Value self_;
  std::string_view name_;
  NativeMethod method_;
};

class MacroObject final : public Object {
 public:
  MacroObject(const MacroSpec& spec, ScopePtr closure)
      : spec_(&spec), closure_(std::move(closure)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string describe() const override {
    return spec_->name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", spec_->name);
  }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Interpreter& in, CallArgs& args) override;
  const MacroSpec& spec() const { return *spec_; }
  const ScopePtr& closure() const { return closure_; }

 private:
  const MacroSpec* spec_;
  ScopePtr closure_;
};

class CyclerObject final : public Object {
 public:
  explicit CyclerObject(std::vector<Value> items);

  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  int depth() const override { return depth_; }
  Value next();
  void reset() { at_ = 0; }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
  int depth_ = 1;
};

class JoinerObject final : public Object {
 public:
  explicit JoinerObject(Value separator) : separator_(std::move(separator)) {}

  std::string_view type_name() const override { return "Joiner"; }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Interpreter& in, CallArgs& args) override;

 private:
  Value separator_;
  bool used_ = false;
};

// A running loop. Items are drawn one by one, so a filter in the loop line sees what the body has
// changed.
class LoopState final : public Object {
 public:
  LoopState(const ForStmt& node, std::vector<Value> items, ScopePtr outer, int depth0);

  std::string_view type_name() const override { return "LoopContext"; }
  std::string describe() const override;
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Interpreter& in, CallArgs& args) override;  // loop(items) of a recursive loop
  std::optional<std::size_t> length(Interpreter& in) override { return count(in); }

  bool advance(Interpreter& in);
  const Value& current() const { return current_; }
  bool changed(std::vector<Value> values);
  Value cycle(const std::vector<Value>& values) const;
  void finish() { items_.clear(); }  // what outlives the loop keeps no items

 private:
  bool peek(Interpreter& in);
  std::size_t count(Interpreter& in);

  const ForStmt* node_;
  std::vector<Value> items_;
  std::size_t next_ = 0;
  bool peeked_ = false;   // items_[next_] has passed the filter
  bool counted_ = false;  // all that is left has
  ScopePtr outer_;
  int depth0_;
  Int index0_ = -1;
  Value previous_;
  Value current_;
  bool has_changed_value_ = false;
  std::vector<Value> changed_value_;
};

}  // namespace headrace::jinja
