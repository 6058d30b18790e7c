// The one map from what went wrong to what a client sees: status, type, code and words. Every
// answer that is no success has the body {"error":{"message","type","param","code"}}. Pure data,
// any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

struct ApiError {
  int status = 500;
  std::string type;       // OpenAI's names where OpenAI has one
  std::string code;       // short and stable, for programs
  std::string message;    // one line, for people
  std::string param;      // the field it is about; "" becomes null
  int retry_after_s = 0;  // > 0: sent as Retry-After

  std::string to_json() const;
};

// By code: kInvalidArgument, kUnsupported -> 400, kNotFound -> 404, kExhausted -> 429, kUnavailable
// -> 503, kDeadline -> 504, kCancelled -> 503, the rest -> 500.
ApiError to_api_error(const Error& error);

// 400 about one field.
ApiError bad_request(std::string message, std::string param = {});
// With the type and code that go with this status.
ApiError api_error(int status, std::string message);

// The reason phrase of a status line.
std::string_view reason_phrase(int status);

}  // namespace headrace
