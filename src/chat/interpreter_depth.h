// The interpreter's recursion counter and its capture of text, shared by its parts.
#pragma once

#include "chat/interpreter.h"

namespace headrace::jinja {

class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& in) : in_(in) {
    if (++in_.depth_ > kMax) {
      --in_.depth_;
      fail_budget("the template recurses too deeply");
    }
  }
  ~Depth() { --in_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  static constexpr int kMax = 1500;
  Interpreter& in_;
};

// While it lives, text goes into it and names into `scope`.
class Interpreter::Capture {
 public:
  Capture(Interpreter& in, ScopePtr scope)
      : in_(in), builder_(in.budget()), out_(in.out_), scope_(std::move(in.scope_)) {
    in_.out_ = &builder_;
    in_.scope_ = std::move(scope);
  }
  ~Capture() {
    in_.out_ = out_;
    in_.scope_ = std::move(scope_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Text take() { return builder_.take(); }

 private:
  Interpreter& in_;
  TextBuilder builder_;
  TextBuilder* out_;
  ScopePtr scope_;
};

}  // namespace headrace::jinja
