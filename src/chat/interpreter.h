// Walks a Program and makes its text. One Interpreter renders once, on one thread; the Program may
// be shared. Failures are TemplateFailure; line() then tells where. Scopes chain as Jinja's do:
// loop iterations, macros, blocks, with and call bodies open one, if does not.
#pragma once

#include <ctime>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/ast.h"
#include "chat/value.h"

namespace headrace::jinja {

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Gives positional and named arguments the places of a signature; what does not fit fails.
class ArgReader {
 public:
  ArgReader(CallArgs& args,
            std::string_view function,
            std::initializer_list<std::string_view> names,
            std::size_t required = 0);

  // Null where the argument was not given.
  const Value* get(std::size_t i) const {
    return values_[i].is_given ? &values_[i].value : nullptr;
  }
  Value value(std::size_t i, const Value& otherwise) const {
    return values_[i].is_given ? values_[i].value : otherwise;
  }
  Int integer(std::size_t i, Int otherwise) const;
  bool flag(std::size_t i, bool otherwise) const;
  // Null where it was not given or none; anything but a string fails.
  const Text* text(std::size_t i) const;

 private:
  struct Slot {
    bool is_given = false;
    Value value;
  };
  std::string_view function_;
  std::vector<Slot> values_;
};

// Fails if there are any.
void take_no_arguments(CallArgs& args, std::string_view function);

struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> vars;

  void set(int name, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

class LoopState;
class MacroObject;

class Interpreter {
 public:
  struct Settings {
    Budget budget;
    std::size_t max_output_bytes;
    std::function<std::tm()> local_time;
  };
  enum class Flow { kNext, kBreak, kContinue };

  Interpreter(std::shared_ptr<const Program> program, Settings settings);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void set_global(std::string_view name, Value value);
  Text render();

  int line() const { return line_; }
  Budget& budget() { return settings_.budget; }
  std::tm local_time() const { return settings_.local_time(); }

  // What filters, tests and methods need.
  Text str(const Value& value);
  Value make_text(std::string_view bytes, bool trusted);
  std::vector<Value> iterate(const Value& value);
  std::size_t length(const Value& value);
  Value attribute(const Value& object, const Text& name);
  Value item(const Value& object, const Value& key);
  Value call(const Value& callee, CallArgs& args);
  Value apply_filter(std::string_view name, const Value& input, CallArgs& args);
  bool apply_test(std::string_view name, const Value& input, CallArgs& args);
  // Objects that may hold each other in a ring; let go of at the end.
  void keep(const ObjectPtr& object) { kept_.push_back(object); }

  // For loops and macros, which run bodies.
  Text run_loop(const ForStmt& node, const Value& iterable, const ScopePtr& outer, int depth0);
  Text call_macro(MacroObject& macro, CallArgs& args);
  bool loop_test(const ForStmt& node, const Value& item, const ScopePtr& outer);

 private:
  class Depth;
  class Capture;

  Value eval(const Expr& expr);
  Value eval_node(const LiteralExpr& node) { return node.value; }
  Value eval_node(const NameExpr& node) { return lookup(node.name); }
  Value eval_node(const SequenceExpr& node);
  Value eval_node(const DictExpr& node);
  Value eval_node(const SignExpr& node);
  Value eval_node(const NotExpr& node);
  Value eval_node(const BinaryExpr& node);
  Value eval_node(const LogicExpr& node);
  Value eval_node(const CompareExpr& node);
  Value eval_node(const ConcatExpr& node);
  Value eval_node(const CondExpr& node);
  Value eval_node(const AttributeExpr& node);
  Value eval_node(const ItemExpr& node);
  Value eval_node(const SliceExpr& node);
  Value eval_node(const CallExpr& node);
  Value eval_node(const FilterExpr& node);
  Value eval_node(const TestExpr& node);
  Value filtered(const FilterExpr& node, const Value& innermost);
  Value call_with(const CallExpr& node, const Value* caller);
  CallArgs arguments(const Arguments& args);
  Value slice(const Value& object, const SliceExpr& node);

  Flow exec(const Body& body);
  Flow exec_node(const OutputStmt& node);
  Flow exec_node(const IfStmt& node);
  Flow exec_node(const ForStmt& node);
  Flow exec_node(const SetStmt& node);
  Flow exec_node(const SetBlockStmt& node);
  Flow exec_node(const MacroStmt& node);
  Flow exec_node(const CallStmt& node);
  Flow exec_node(const FilterStmt& node);
  Flow exec_node(const WithStmt& node);
  Flow exec_node(const ScopeStmt& node);
  Flow exec_node(const BlockStmt& node);
  Flow exec_node(const AutoescapeStmt& node);
  Flow exec_node(const BreakStmt&) { return Flow::kBreak; }
  Flow exec_node(const ContinueStmt&) { return Flow::kContinue; }
  Flow exec_node(const UnavailableStmt& node);

  Flow loop(const ForStmt& node, const Value& iterable, const ScopePtr& outer, int depth0);
  Flow in_scope(const Body& body, ScopePtr parent);
  void emit(const Value& value);
  void assign(const Target& target, const Value& value);
  Value lookup(int name) const;
  Value make_macro(const MacroSpec& spec);
  std::vector<std::size_t> bind_parameters(const MacroSpec& spec, CallArgs& args, Scope& scope);
  void bind_extras(const MacroSpec& spec, CallArgs& args, Scope& scope);

  std::shared_ptr<const Program> program_;
  Settings settings_;
  ScopePtr root_;
  ScopePtr scope_;
  std::vector<Value> globals_;  // by name id
  std::vector<char> has_global_;
  TextBuilder* out_ = nullptr;
  int loop_name_ = -1;
  int line_ = 1;
  int depth_ = 0;
  bool autoescape_ = false;
  std::vector<ScopePtr> captured_;
  std::vector<ObjectPtr> kept_;
};

}  // namespace headrace::jinja
