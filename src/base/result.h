// Result<T>: a value, or an Error that a person can act on. Used for whatever input or environment
// can cause. An error's message is one line: what, where, why, and what to do. The same text goes
// to CLI and HTTP.
#pragma once

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace headrace {

enum class ErrorCode {
  kInvalidArgument,  // the caller's words are wrong: CLI exit 2, HTTP 400
  kNotFound,         // a file, model or route is not there
  kCorrupt,          // a file is not what it says it is
  kUnsupported,      // well formed, but not something this program does
  kExhausted,        // memory, disk, a full queue
  kUnavailable,      // not now: loading, draining, no network
  kDeadline,         // too late
  kCancelled,        // the asker went away
  kInternal,         // our own fault
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string param;  // the field or flag it is about, where there is one

  // The same error with "prefix: " before its message, for a caller that knows where it happened.
  [[nodiscard]] Error within(std::string_view prefix) && {
    message = fmt::format("{}: {}", prefix, message);
    return std::move(*this);
  }
};

template <typename... Args>
[[nodiscard]] Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...), {}};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    HR_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    HR_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    HR_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() {
    HR_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  const Error& error() const {
    HR_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Done, or an error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() {
    HR_CHECK(!ok());
    return *error_;
  }
  const Error& error() const {
    HR_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace headrace

#define HR_CONCAT_INNER(a, b) a##b
#define HR_CONCAT(a, b) HR_CONCAT_INNER(a, b)

// Leaves the function with the error of a failed Result; goes on otherwise.
#define HR_RETURN_IF_ERROR(expression)                    \
  do {                                                    \
    if (auto hr_status = (expression); !hr_status.ok()) { \
      return std::move(hr_status.error());                \
    }                                                     \
  } while (false)

// HR_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
#define HR_ASSIGN_OR_RETURN(target, expression) \
  HR_ASSIGN_INNER(HR_CONCAT(hr_result_, __LINE__), target, expression)
#define HR_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                       \
  if (!result.ok()) {                               \
    return std::move(result.error());               \
  }                                                 \
  target = std::move(result).value()
