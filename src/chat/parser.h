// Tokens to tree: Jinja's grammar with the loopcontrols extension and the generation tag. Recursive
// descent with a depth limit; a bad template throws TemplateFailure with its line. One Parser, one
// parse.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/ast.h"
#include "chat/lexer.h"

namespace headrace::jinja {

std::shared_ptr<const Program> parse_template(std::string_view source);

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), program_(std::make_shared<Program>()) {}
  std::shared_ptr<const Program> run();

 private:
  struct MacroUse {
    bool caller = false;
    bool varargs = false;
    bool kwargs = false;
  };
  enum class Condition { kWith, kWithout };  // may an expression be a ternary?
  using Names = std::vector<std::string_view>;

  class Nesting;  // counts recursion

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const Token& next();
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  bool at_any_name(const Names& names) const;
  void expect_op(std::string_view op);
  const Token& expect(TokenType type, std::string_view what);
  [[noreturn]] void error(std::string message) const;
  [[noreturn]] void error_at(int line, std::string message) const;

  // Expressions (parser_expression.cc).
  template <typename Node>
  const Expr* make(int line, Node node) {
    return &program_->exprs.emplace_back(Expr{line, std::move(node)});
  }
  const Expr* expression(Condition condition = Condition::kWith);
  const Expr* conditional();
  const Expr* logic_or();
  const Expr* logic_and();
  const Expr* logic_not();
  const Expr* compare();
  bool compare_operator(CompareOp& op);
  const Expr* sum();
  const Expr* concat();
  const Expr* product();
  const Expr* power();
  const Expr* unary(bool with_filter = true);
  const Expr* primary();
  const Expr* name_or_constant();
  const Expr* tuple(Condition condition, const Names& end_names, bool parenthesized = false);
  const Expr* list();
  const Expr* dict();
  const Expr* postfix(const Expr* node);
  const Expr* filters_and_tests(const Expr* node);
  const Expr* subscript(const Expr* node);
  const Expr* subscript_key();
  const Expr* slice_part();
  const Expr* call(const Expr* callee);
  Arguments call_arguments();
  const Expr* filter_chain(const Expr* node, bool start_inline);
  const Expr* test(const Expr* node);
  std::string dotted_name();

  // Statements (parser.cc).
  template <typename Node>
  const Stmt* make_stmt(int line, Node node) {
    return &program_->stmts.emplace_back(Stmt{line, std::move(node)});
  }
  Body statements_until(const Names& end_tags);  // leaves the end tag's name current
  Body body_of(const Names& end_tags);           // behind the head of a block statement
  Body whole_body(std::string_view end_tag);     // and takes the end tag
  const Stmt* statement();
  const Stmt* output(const Names& end_tags);
  const Stmt* if_statement();
  const Stmt* for_statement();
  const Stmt* set_statement();
  const Stmt* macro_statement();
  const Stmt* call_statement();
  const Stmt* filter_statement();
  const Stmt* with_statement();
  const Stmt* block_statement();
  const Stmt* autoescape_statement();
  const Stmt* print_statement();
  const Stmt* generation_statement();
  const Stmt* loop_control(bool is_break);
  const Stmt* unavailable_statement();
  void signature(MacroSpec& macro);
  void macro_body(MacroSpec& macro, std::string_view end_tag);
  Target target(const Names& end_names, bool with_namespace);
  Target single_target(bool with_namespace);
  Target name_target();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::shared_ptr<Program> program_;
  int nesting_ = 0;
  int loops_ = 0;  // enclosing loops that break and continue reach
  int soft_ = 0;   // inside an if: unknown filters and tests fail only when reached
  std::vector<MacroUse> macros_;
  std::vector<std::string> blocks_;
};

}  // namespace headrace::jinja
