// A template as a tree. Nodes live in the Program that owns them and point at each other; nothing
// changes after parsing, so any number of threads may render one Program.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/value.h"

namespace headrace::jinja {

struct Expr;
struct Stmt;
struct FilterEntry;
struct TestEntry;
using Body = std::vector<const Stmt*>;

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct Arguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string, const Expr*>> named;
  const Expr* star = nullptr;         // *args
  const Expr* double_star = nullptr;  // **kwargs
};

struct LiteralExpr {
  Value value;
};
struct NameExpr {
  int name;
};
struct SequenceExpr {
  bool tuple;
  std::vector<const Expr*> items;
};
struct DictExpr {
  std::vector<std::pair<const Expr*, const Expr*>> items;
};
struct SignExpr {
  bool negative;
  const Expr* operand;
};
struct NotExpr {
  const Expr* operand;
};
struct BinaryExpr {
  BinaryOp op;
  const Expr* left;
  const Expr* right;
};
struct LogicExpr {
  bool is_and;
  const Expr* left;
  const Expr* right;
};
struct CompareExpr {
  const Expr* first;
  std::vector<std::pair<CompareOp, const Expr*>> rest;
};
struct ConcatExpr {
  std::vector<const Expr*> parts;
};
struct CondExpr {
  const Expr* test;
  const Expr* then;
  const Expr* otherwise;  // may be null
};
struct AttributeExpr {
  const Expr* object;
  Text name;
};
struct ItemExpr {
  const Expr* object;
  const Expr* key;
};
struct SliceExpr {  // only as the key of an ItemExpr
  const Expr* start;
  const Expr* stop;
  const Expr* step;
};
struct CallExpr {
  const Expr* callee;
  Arguments arguments;
};
struct FilterExpr {
  const Expr* input;  // null: the text of the block around it
  std::string name;
  const FilterEntry* filter;  // null: unknown, an error if it is reached
  Arguments arguments;
};
struct TestExpr {
  const Expr* input;
  std::string name;
  const TestEntry* test;
  Arguments arguments;
};

struct Expr {
  int line;
  std::variant<LiteralExpr,
               NameExpr,
               SequenceExpr,
               DictExpr,
               SignExpr,
               NotExpr,
               BinaryExpr,
               LogicExpr,
               CompareExpr,
               ConcatExpr,
               CondExpr,
               AttributeExpr,
               ItemExpr,
               SliceExpr,
               CallExpr,
               FilterExpr,
               TestExpr>
      node;
};

struct Target {
  enum class Kind { kName, kNamespace, kTuple } kind = Kind::kName;
  int name = 0;
  std::string attribute;      // kNamespace
  std::vector<Target> items;  // kTuple
};

struct MacroSpec {
  std::string name;  // empty: a call block
  std::vector<int> parameters;
  std::vector<std::string> parameter_names;
  std::vector<const Expr*> defaults;  // of the last parameters
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Body body;
};

struct OutputStmt {
  std::vector<const Expr*> parts;
};
struct IfStmt {
  std::vector<std::pair<const Expr*, Body>> branches;
  Body otherwise;
};
struct ForStmt {
  Target target;
  const Expr* iterable = nullptr;
  const Expr* test = nullptr;
  bool recursive = false;
  Body body;
  Body otherwise;
};
struct SetStmt {
  Target target;
  const Expr* value;
};
struct SetBlockStmt {
  Target target;
  const Expr* filter;  // may be null
  Body body;
};
struct MacroStmt {
  int name;
  MacroSpec macro;
};
struct CallStmt {
  MacroSpec caller;
  const Expr* call;
};
struct FilterStmt {
  const Expr* filter;
  Body body;
};
struct WithStmt {
  std::vector<Target> targets;
  std::vector<const Expr*> values;
  Body body;
};
struct ScopeStmt {  // generation
  Body body;
};
struct BlockStmt {  // sees the outermost scope only, unless scoped
  bool scoped;
  Body body;
};
struct AutoescapeStmt {
  const Expr* enabled;
  Body body;
};
struct BreakStmt {};
struct ContinueStmt {};
struct UnavailableStmt {  // include, import, extends: chat templates stand alone
  std::string tag;
};

struct Stmt {
  int line;
  std::variant<OutputStmt,
               IfStmt,
               ForStmt,
               SetStmt,
               SetBlockStmt,
               MacroStmt,
               CallStmt,
               FilterStmt,
               WithStmt,
               ScopeStmt,
               BlockStmt,
               AutoescapeStmt,
               BreakStmt,
               ContinueStmt,
               UnavailableStmt>
      node;
};

struct Program {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::vector<std::string> names;
  std::unordered_map<std::string, int> name_ids;
  Body body;

  int intern(std::string_view name) {
    const auto [it, added] =
        name_ids.try_emplace(std::string(name), static_cast<int>(names.size()));
    if (added) {
      names.emplace_back(name);
    }
    return it->second;
  }
};

}  // namespace headrace::jinja
