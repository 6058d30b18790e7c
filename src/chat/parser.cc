#include "chat/parser.h"

#include <algorithm>

#include "chat/parser_nesting.h"

namespace headrace::jinja {

std::shared_ptr<const Program> parse_template(std::string_view source) {
  return Parser(tokenize(source)).run();
}

std::shared_ptr<const Program> Parser::run() {
  program_->body = statements_until({});
  return program_;
}

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) {
    ++at_;
  }
  return token;
}

bool Parser::skip_op(std::string_view op) {
  if (!current().is_op(op)) {
    return false;
  }
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) {
    return false;
  }
  next();
  return true;
}

bool Parser::at_any_name(const Names& names) const {
  return std::any_of(names.begin(), names.end(), [this](std::string_view name) {
    return current().is_name(name);
  });
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) {
    error(fmt::format("expected token '{}', got '{}'", op, current().describe()));
  }
}

const Token& Parser::expect(TokenType type, std::string_view what) {
  if (current().type != type) {
    error(fmt::format("expected token '{}', got '{}'", what, current().describe()));
  }
  return next();
}

void Parser::error(std::string message) const { error_at(current().line, std::move(message)); }

void Parser::error_at(int line, std::string message) const {
  throw TemplateFailure(TemplateFailure::Kind::kSyntax, std::move(message), line);
}

Body Parser::statements_until(const Names& end_tags) {
  const Nesting nesting(*this);
  Body body;
  while (current().type != TokenType::kEnd) {
    if (current().type != TokenType::kBlockBegin) {
      body.push_back(output(end_tags));
      continue;
    }
    next();
    if (at_any_name(end_tags)) {
      return body;
    }
    body.push_back(statement());
    expect(TokenType::kBlockEnd, "end of statement block");
  }
  if (!end_tags.empty()) {
    error(fmt::format("Unexpected end of template. Jinja was looking for the following tags: '{}'.",
                      fmt::join(end_tags, "' or '")));
  }
  return body;
}

Body Parser::body_of(const Names& end_tags) {
  skip_op(":");
  expect(TokenType::kBlockEnd, "end of statement block");
  return statements_until(end_tags);
}

Body Parser::whole_body(std::string_view end_tag) {
  Body body = body_of({end_tag});
  next();
  return body;
}

const Stmt* Parser::output(const Names& /*end_tags*/) {
  const int line = current().line;
  OutputStmt out;
  while (true) {
    if (current().type == TokenType::kData) {
      const Token& token = next();
      out.parts.push_back(make(token.line, LiteralExpr{Value::text(Text::literal(token.text))}));
    } else if (current().type == TokenType::kVariableBegin) {
      next();
      out.parts.push_back(tuple(Condition::kWith, {}));
      expect(TokenType::kVariableEnd, "end of print statement");
    } else {
      return make_stmt(line, std::move(out));
    }
  }
}

const Stmt* Parser::statement() {
  struct Tag {
    std::string_view name;
    const Stmt* (Parser::*parse)();
  };
  static constexpr Tag kTags[] = {
      {"if", &Parser::if_statement},
      {"for", &Parser::for_statement},
      {"set", &Parser::set_statement},
      {"macro", &Parser::macro_statement},
      {"call", &Parser::call_statement},
      {"filter", &Parser::filter_statement},
      {"with", &Parser::with_statement},
      {"block", &Parser::block_statement},
      {"autoescape", &Parser::autoescape_statement},
      {"print", &Parser::print_statement},
      {"generation", &Parser::generation_statement},
      {"include", &Parser::unavailable_statement},
      {"import", &Parser::unavailable_statement},
      {"from", &Parser::unavailable_statement},
      {"extends", &Parser::unavailable_statement},
  };
  if (current().type != TokenType::kName) {
    error("tag name expected");
  }
  if (current().text == "break" || current().text == "continue") {
    return loop_control(current().text == "break");
  }
  for (const Tag& tag : kTags) {
    if (current().text == tag.name) {
      return (this->*tag.parse)();
    }
  }
  error(fmt::format("Encountered unknown tag '{}'.", current().text));
}

const Stmt* Parser::loop_control(bool is_break) {
  const int line = next().line;
  if (loops_ == 0) {
    error_at(line, fmt::format("'{}' outside loop", is_break ? "break" : "continue"));
  }
  if (is_break) {
    return make_stmt(line, BreakStmt{});
  }
  return make_stmt(line, ContinueStmt{});
}

const Stmt* Parser::if_statement() {
  const int line = next().line;
  IfStmt node;
  while (true) {
    const Expr* condition = tuple(Condition::kWithout, {});
    ++soft_;
    Body body = body_of({"elif", "else", "endif"});
    node.branches.emplace_back(condition, std::move(body));
    const Token& tag = next();
    if (tag.text == "else") {
      node.otherwise = whole_body("endif");
    }
    --soft_;
    if (tag.text != "elif") {
      break;
    }
  }
  return make_stmt(line, std::move(node));
}

const Stmt* Parser::for_statement() {
  const int line = next().line;
  ForStmt node;
  node.target = target({"in"}, false);
  const int loop_name = program_->intern("loop");
  const auto assigns_loop = [loop_name](const Target& t) {
    return t.kind == Target::Kind::kName && t.name == loop_name;
  };
  if (assigns_loop(node.target) ||
      std::any_of(node.target.items.begin(), node.target.items.end(), assigns_loop)) {
    error_at(line, "Can't assign to special loop variable in for-loop target");
  }
  if (!skip_name("in")) {
    error(fmt::format("expected token 'in', got '{}'", current().describe()));
  }
  node.iterable = tuple(Condition::kWithout, {"recursive"});
  if (skip_name("if")) {
    node.test = expression();
  }
  node.recursive = skip_name("recursive");
  ++loops_;
  node.body = body_of({"endfor", "else"});
  --loops_;
  if (next().text == "else") {
    node.otherwise = whole_body("endfor");
  }
  return make_stmt(line, std::move(node));
}

const Stmt* Parser::set_statement() {
  const int line = next().line;
  Target to = target({}, true);
  if (skip_op("=")) {
    const Expr* value = tuple(Condition::kWith, {});
    return make_stmt(line, SetStmt{std::move(to), value});
  }
  const Expr* filter = filter_chain(nullptr, false);
  Body body = whole_body("endset");
  return make_stmt(line, SetBlockStmt{std::move(to), filter, std::move(body)});
}

const Stmt* Parser::macro_statement() {
  const int line = next().line;
  MacroSpec macro;
  macro.name = expect(TokenType::kName, "name").text;
  const int name = program_->intern(macro.name);
  signature(macro);
  macro_body(macro, "endmacro");
  return make_stmt(line, MacroStmt{name, std::move(macro)});
}

const Stmt* Parser::call_statement() {
  const int line = next().line;
  MacroSpec caller;
  if (current().is_op("(")) {
    signature(caller);
  }
  const Expr* expr = expression();
  if (!std::holds_alternative<CallExpr>(expr->node)) {
    error_at(line, "expected call");
  }
  macro_body(caller, "endcall");
  return make_stmt(line, CallStmt{std::move(caller), expr});
}

void Parser::signature(MacroSpec& macro) {
  expect_op("(");
  while (!current().is_op(")")) {
    if (!macro.parameters.empty()) {
      expect_op(",");
    }
    const Token& name = expect(TokenType::kName, "name");
    macro.parameters.push_back(program_->intern(name.text));
    macro.parameter_names.push_back(name.text);
    if (skip_op("=")) {
      macro.defaults.push_back(expression());
    } else if (!macro.defaults.empty()) {
      error("non-default argument follows default argument");
    }
  }
  expect_op(")");
}

void Parser::macro_body(MacroSpec& macro, std::string_view end_tag) {
  macros_.emplace_back();
  const int loops = std::exchange(loops_, 0);
  const int soft = std::exchange(soft_, 0);
  macro.body = whole_body(end_tag);
  loops_ = loops;
  soft_ = soft;
  const MacroUse use = macros_.back();
  macros_.pop_back();
  const auto declares = [&macro](std::string_view name) {
    return std::find(macro.parameter_names.begin(), macro.parameter_names.end(), name) !=
           macro.parameter_names.end();
  };
  macro.uses_caller = use.caller && !declares("caller");
  macro.uses_varargs = use.varargs && !declares("varargs");
  macro.uses_kwargs = use.kwargs && !declares("kwargs");
}

const Stmt* Parser::filter_statement() {
  const int line = next().line;
  const Expr* filter = filter_chain(nullptr, true);
  return make_stmt(line, FilterStmt{filter, whole_body("endfilter")});
}

const Stmt* Parser::with_statement() {
  const int line = next().line;
  WithStmt node;
  while (current().type != TokenType::kBlockEnd && current().type != TokenType::kEnd) {
    if (!node.targets.empty()) {
      expect_op(",");
    }
    node.targets.push_back(target({}, false));
    expect_op("=");
    node.values.push_back(expression());
  }
  node.body = whole_body("endwith");
  return make_stmt(line, std::move(node));
}

const Stmt* Parser::block_statement() {
  const int line = next().line;
  const std::string name = expect(TokenType::kName, "name").text;
  if (std::find(blocks_.begin(), blocks_.end(), name) != blocks_.end()) {
    error_at(line, fmt::format("block '{}' defined twice", name));
  }
  blocks_.push_back(name);
  BlockStmt node{};
  node.scoped = skip_name("scoped");
  if (skip_name("required")) {
    error_at(line, "required blocks need a template that extends this one");
  }
  const int loops = std::exchange(loops_, 0);
  node.body = whole_body("endblock");
  loops_ = loops;
  skip_name(name);
  return make_stmt(line, std::move(node));
}

const Stmt* Parser::autoescape_statement() {
  const int line = next().line;
  const Expr* enabled = expression();
  return make_stmt(line, AutoescapeStmt{enabled, whole_body("endautoescape")});
}

const Stmt* Parser::print_statement() {
  const int line = next().line;
  OutputStmt node;
  while (current().type != TokenType::kBlockEnd && current().type != TokenType::kEnd) {
    if (!node.parts.empty()) {
      expect_op(",");
    }
    node.parts.push_back(expression());
  }
  return make_stmt(line, std::move(node));
}

const Stmt* Parser::generation_statement() {
  const int line = next().line;
  const int loops = std::exchange(loops_, 0);
  Body body = whole_body("endgeneration");
  loops_ = loops;
  return make_stmt(line, ScopeStmt{std::move(body)});
}

const Stmt* Parser::unavailable_statement() {
  const Token& tag = next();
  while (current().type != TokenType::kBlockEnd && current().type != TokenType::kEnd) {
    next();
  }
  return make_stmt(tag.line, UnavailableStmt{tag.text});
}

Target Parser::name_target() {
  const Token& token = expect(TokenType::kName, "name");
  static const Names constants = {"true", "True", "false", "False", "none", "None"};
  if (std::find(constants.begin(), constants.end(), token.text) != constants.end()) {
    error_at(token.line, fmt::format("can't assign to '{}'", token.text));
  }
  Target out;
  out.name = program_->intern(token.text);
  return out;
}

Target Parser::single_target(bool with_namespace) {
  const Nesting nesting(*this);
  if (skip_op("(")) {
    Target inner = target({}, with_namespace);
    expect_op(")");
    return inner;
  }
  if (current().type != TokenType::kName) {
    error(fmt::format("can't assign to '{}'", current().describe()));
  }
  Target out = name_target();
  if (with_namespace && skip_op(".")) {
    out.kind = Target::Kind::kNamespace;
    out.attribute = expect(TokenType::kName, "name").text;
  }
  return out;
}

Target Parser::target(const Names& end_names, bool with_namespace) {
  Target out;
  bool is_tuple = false;
  while (true) {
    const bool end =
        current().type == TokenType::kBlockEnd || current().is_op(")") || at_any_name(end_names);
    if (end) {
      break;
    }
    out.items.push_back(single_target(with_namespace));
    if (!current().is_op(",")) {
      break;
    }
    next();
    is_tuple = true;
  }
  if (out.items.empty()) {
    error(fmt::format("Expected an expression, got '{}'", current().describe()));
  }
  if (!is_tuple) {
    Target only = std::move(out.items.front());
    return only;
  }
  out.kind = Target::Kind::kTuple;
  return out;
}

}  // namespace headrace::jinja
