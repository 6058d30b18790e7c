#include <algorithm>

#include "chat/filters.h"
#include "chat/parser.h"
#include "chat/parser_nesting.h"
#include "chat/template_tests.h"

namespace headrace::jinja {

const Expr* Parser::expression(Condition condition) {
  const Nesting nesting(*this);
  return condition == Condition::kWith ? conditional() : logic_or();
}

const Expr* Parser::conditional() {
  const Nesting nesting(*this);
  int line = current().line;
  const Expr* node = logic_or();
  while (skip_name("if")) {
    ++soft_;
    const Expr* condition = logic_or();
    const Expr* otherwise = skip_name("else") ? conditional() : nullptr;
    --soft_;
    node = make(line, CondExpr{condition, node, otherwise});
    line = current().line;
  }
  return node;
}

const Expr* Parser::logic_or() {
  const int line = current().line;
  const Expr* left = logic_and();
  while (skip_name("or")) {
    const Expr* right = logic_and();
    left = make(line, LogicExpr{false, left, right});
  }
  return left;
}

const Expr* Parser::logic_and() {
  const int line = current().line;
  const Expr* left = logic_not();
  while (skip_name("and")) {
    const Expr* right = logic_not();
    left = make(line, LogicExpr{true, left, right});
  }
  return left;
}

const Expr* Parser::logic_not() {
  if (!current().is_name("not")) {
    return compare();
  }
  const Nesting nesting(*this);
  const int line = next().line;
  return make(line, NotExpr{logic_not()});
}

bool Parser::compare_operator(CompareOp& op) {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq},
      {"!=", CompareOp::kNe},
      {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe},
      {">", CompareOp::kGt},
      {">=", CompareOp::kGe},
  };
  for (const auto& [text, value] : kOps) {
    if (skip_op(text)) {
      op = value;
      return true;
    }
  }
  if (skip_name("in")) {
    op = CompareOp::kIn;
    return true;
  }
  if (current().is_name("not") && look().is_name("in")) {
    next();
    next();
    op = CompareOp::kNotIn;
    return true;
  }
  return false;
}

const Expr* Parser::compare() {
  const int line = current().line;
  CompareExpr node{sum(), {}};
  CompareOp op{};
  while (compare_operator(op)) {
    node.rest.emplace_back(op, sum());
  }
  if (node.rest.empty()) {
    return node.first;
  }
  return make(line, std::move(node));
}

const Expr* Parser::sum() {
  const Expr* left = concat();
  while (current().is_op("+") || current().is_op("-")) {
    const Token& op = next();
    const Expr* right = concat();
    left = make(op.line, BinaryExpr{op.text == "+" ? BinaryOp::kAdd : BinaryOp::kSub, left, right});
  }
  return left;
}

const Expr* Parser::concat() {
  const int line = current().line;
  ConcatExpr node;
  node.parts.push_back(product());
  while (skip_op("~")) {
    node.parts.push_back(product());
  }
  if (node.parts.size() == 1) {
    return node.parts.front();
  }
  return make(line, std::move(node));
}

const Expr* Parser::product() {
  const Expr* left = power();
  while (current().is_op("*") || current().is_op("/") || current().is_op("//") ||
         current().is_op("%")) {
    const Token& token = next();
    const BinaryOp op = token.text == "*"    ? BinaryOp::kMul
                        : token.text == "/"  ? BinaryOp::kDiv
                        : token.text == "//" ? BinaryOp::kFloorDiv
                                             : BinaryOp::kMod;
    const Expr* right = power();
    left = make(token.line, BinaryExpr{op, left, right});
  }
  return left;
}

const Expr* Parser::power() {
  const Expr* left = unary();
  while (current().is_op("**")) {
    const int line = next().line;
    const Expr* right = unary();
    left = make(line, BinaryExpr{BinaryOp::kPow, left, right});
  }
  return left;
}

const Expr* Parser::unary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = current().line;
  const Expr* node = nullptr;
  if (current().is_op("-") || current().is_op("+")) {
    const bool negative = next().text == "-";
    node = make(line, SignExpr{negative, unary(false)});
  } else {
    node = primary();
  }
  node = postfix(node);
  return with_filter ? filters_and_tests(node) : node;
}

const Expr* Parser::name_or_constant() {
  const Token& token = next();
  if (token.text == "true" || token.text == "True") {
    return make(token.line, LiteralExpr{Value::boolean(true)});
  }
  if (token.text == "false" || token.text == "False") {
    return make(token.line, LiteralExpr{Value::boolean(false)});
  }
  if (token.text == "none" || token.text == "None") {
    return make(token.line, LiteralExpr{Value::none()});
  }
  for (MacroUse& use : macros_) {
    use.caller = use.caller || token.text == "caller";
    use.varargs = use.varargs || token.text == "varargs";
    use.kwargs = use.kwargs || token.text == "kwargs";
  }
  return make(token.line, NameExpr{program_->intern(token.text)});
}

const Expr* Parser::primary() {
  const Token& token = current();
  switch (token.type) {
    case TokenType::kName:
      return name_or_constant();
    case TokenType::kString: {
      std::string text;
      while (current().type == TokenType::kString) {
        text += next().text;
      }
      return make(token.line, LiteralExpr{Value::text(Text::literal(text))});
    }
    case TokenType::kInteger:
      return make(token.line, LiteralExpr{Value::integer(next().integer)});
    case TokenType::kFloat:
      return make(token.line, LiteralExpr{Value::real(next().real)});
    default:
      break;
  }
  if (skip_op("(")) {
    const Expr* inner = tuple(Condition::kWith, {}, true);
    expect_op(")");
    return inner;
  }
  if (token.is_op("[")) {
    return list();
  }
  if (token.is_op("{")) {
    return dict();
  }
  error(fmt::format("unexpected '{}'", token.describe()));
}

const Expr* Parser::tuple(Condition condition, const Names& end_names, bool parenthesized) {
  const Nesting nesting(*this);
  const int line = current().line;
  SequenceExpr node{true, {}};
  bool is_tuple = false;
  while (true) {
    const bool end = current().type == TokenType::kVariableEnd ||
                     current().type == TokenType::kBlockEnd || current().is_op(")") ||
                     at_any_name(end_names);
    if (end) {
      break;
    }
    node.items.push_back(expression(condition));
    if (!skip_op(",")) {
      break;
    }
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!node.items.empty()) {
      return node.items.front();
    }
    if (!parenthesized) {
      error(fmt::format("Expected an expression, got '{}'", current().describe()));
    }
  }
  return make(line, std::move(node));
}

const Expr* Parser::list() {
  const int line = next().line;
  SequenceExpr node{false, {}};
  while (!current().is_op("]")) {
    if (!node.items.empty()) {
      expect_op(",");
    }
    if (current().is_op("]")) {
      break;
    }
    node.items.push_back(expression());
  }
  expect_op("]");
  return make(line, std::move(node));
}

const Expr* Parser::dict() {
  const int line = next().line;
  DictExpr node;
  while (!current().is_op("}")) {
    if (!node.items.empty()) {
      expect_op(",");
    }
    if (current().is_op("}")) {
      break;
    }
    const Expr* key = expression();
    expect_op(":");
    node.items.emplace_back(key, expression());
  }
  expect_op("}");
  return make(line, std::move(node));
}

const Expr* Parser::postfix(const Expr* node) {
  while (true) {
    if (current().is_op(".") || current().is_op("[")) {
      node = subscript(node);
    } else if (current().is_op("(")) {
      node = call(node);
    } else {
      return node;
    }
  }
}

const Expr* Parser::filters_and_tests(const Expr* node) {
  while (true) {
    if (current().is_op("|")) {
      node = filter_chain(node, false);
    } else if (current().is_name("is")) {
      node = test(node);
    } else if (current().is_op("(")) {
      node = call(node);
    } else {
      return node;
    }
  }
}

const Expr* Parser::subscript(const Expr* node) {
  const Token& open = next();
  if (open.text == ".") {
    const Token& name = next();
    if (name.type == TokenType::kName) {
      return make(open.line, AttributeExpr{node, Text::literal(name.text)});
    }
    if (name.type != TokenType::kInteger) {
      error_at(name.line, "expected name or number");
    }
    return make(open.line,
                ItemExpr{node, make(name.line, LiteralExpr{Value::integer(name.integer)})});
  }
  SequenceExpr keys{true, {}};
  while (!current().is_op("]")) {
    if (!keys.items.empty()) {
      expect_op(",");
    }
    keys.items.push_back(subscript_key());
  }
  expect_op("]");
  const Expr* key = keys.items.size() == 1 ? keys.items.front() : make(open.line, std::move(keys));
  return make(open.line, ItemExpr{node, key});
}

const Expr* Parser::slice_part() {
  if (current().is_op(":") || current().is_op("]") || current().is_op(",")) {
    return nullptr;
  }
  return expression();
}

const Expr* Parser::subscript_key() {
  const int line = current().line;
  const Expr* first = slice_part();
  if (!skip_op(":")) {
    if (first == nullptr) {
      error(fmt::format("unexpected '{}'", current().describe()));
    }
    return first;
  }
  SliceExpr node{first, slice_part(), nullptr};
  if (skip_op(":")) {
    node.step = slice_part();
  }
  return make(line, node);
}

const Expr* Parser::call(const Expr* callee) {
  const int line = current().line;
  return make(line, CallExpr{callee, call_arguments()});
}

Arguments Parser::call_arguments() {
  const int line = current().line;
  const auto ensure = [&](bool condition) {
    if (!condition) {
      error_at(line, "invalid syntax for function call expression");
    }
  };
  expect_op("(");
  Arguments out;
  bool first = true;
  while (!current().is_op(")")) {
    if (!std::exchange(first, false)) {
      expect_op(",");
      if (current().is_op(")")) {
        break;
      }
    }
    if (skip_op("*")) {
      ensure(out.star == nullptr && out.double_star == nullptr);
      out.star = expression();
    } else if (skip_op("**")) {
      ensure(out.double_star == nullptr);
      out.double_star = expression();
    } else if (current().type == TokenType::kName && look().is_op("=")) {
      ensure(out.double_star == nullptr);
      const std::string name = next().text;
      next();
      const bool repeated = std::any_of(out.named.begin(),
                                        out.named.end(),
                                        [&name](const auto& entry) { return entry.first == name; });
      if (repeated) {
        error(fmt::format("keyword argument repeated: {}", name));
      }
      out.named.emplace_back(name, expression());
    } else {
      ensure(out.star == nullptr && out.double_star == nullptr && out.named.empty());
      out.positional.push_back(expression());
    }
  }
  expect_op(")");
  return out;
}

std::string Parser::dotted_name() {
  std::string name = expect(TokenType::kName, "name").text;
  while (skip_op(".")) {
    name += "." + expect(TokenType::kName, "name").text;
  }
  return name;
}

const Expr* Parser::filter_chain(const Expr* node, bool start_inline) {
  while (start_inline || skip_op("|")) {
    start_inline = false;
    const int line = current().line;
    FilterExpr filter{node, dotted_name(), nullptr, {}};
    filter.filter = find_filter(filter.name);
    if (filter.filter == nullptr && soft_ == 0) {
      error_at(line, fmt::format("No filter named '{}'.", filter.name));
    }
    if (current().is_op("(")) {
      filter.arguments = call_arguments();
    }
    node = make(line, std::move(filter));
  }
  return node;
}

const Expr* Parser::test(const Expr* node) {
  const int line = next().line;
  const bool negated = skip_name("not");
  TestExpr out{node, dotted_name(), nullptr, {}};
  out.test = find_test(out.name);
  if (out.test == nullptr && soft_ == 0) {
    error_at(line, fmt::format("No test named '{}'.", out.name));
  }
  const TokenType type = current().type;
  if (current().is_op("(")) {
    out.arguments = call_arguments();
  } else if ((type == TokenType::kName && !at_any_name({"else", "or", "and"})) ||
             type == TokenType::kString || type == TokenType::kInteger ||
             type == TokenType::kFloat || current().is_op("[") || current().is_op("{")) {
    if (current().is_name("is")) {
      error("You cannot chain multiple tests with is");
    }
    out.arguments.positional.push_back(postfix(primary()));
  }
  const Expr* result = make(line, std::move(out));
  return negated ? make(line, NotExpr{result}) : result;
}

}  // namespace headrace::jinja
