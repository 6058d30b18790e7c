// What one rendering may spend, and how a template's failure travels inside this module. A failure
// is thrown as TemplateFailure and becomes a Result at the edge (chat_template.cc); nothing outside
// the module sees it. One rendering, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace headrace::jinja {

class TemplateFailure : public std::exception {
 public:
  enum class Kind {
    kSyntax,  // the source is no template
    kError,   // it failed while running
    kRaised,  // raise_exception: the template's own words
    kBudget,  // it asked for too much
  };

  TemplateFailure(Kind kind, std::string message, int line = 0)
      : kind_(kind), message_(std::move(message)), line_(line) {}

  const char* what() const noexcept override { return message_.c_str(); }
  Kind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  int line() const { return line_; }  // 0: the interpreter knows it

 private:
  Kind kind_;
  std::string message_;
  int line_;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateFailure(TemplateFailure::Kind::kError,
                        fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail_budget(fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateFailure(TemplateFailure::Kind::kBudget,
                        fmt::format(format, std::forward<Args>(args)...));
}

// Counts down. Every node evaluated, item visited and byte of text made is charged, so that no
// template can run or grow without end, whatever it nests.
class Budget {
 public:
  Budget(std::int64_t steps, std::int64_t text_bytes)
      : steps_left_(steps), bytes_left_(text_bytes) {}

  void charge_steps(std::size_t n) {
    steps_left_ -= static_cast<std::int64_t>(n);
    if (steps_left_ < 0) {
      fail_budget("the template runs too long");
    }
  }
  void charge_bytes(std::size_t n) {
    bytes_left_ -= static_cast<std::int64_t>(n);
    if (bytes_left_ < 0) {
      fail_budget("the template makes too much text");
    }
  }

 private:
  std::int64_t steps_left_;
  std::int64_t bytes_left_;
};

}  // namespace headrace::jinja
