// The parser's recursion counter, shared by its two halves.
#pragma once

#include "chat/parser.h"

namespace headrace::jinja {

class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMax) {
      parser_.error("the template nests too deeply");
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  static constexpr int kMax = 200;
  Parser& parser_;
};

}  // namespace headrace::jinja
