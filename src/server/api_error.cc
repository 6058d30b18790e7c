#include "server/api_error.h"

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace headrace {
namespace {

struct StatusRow {
  int status;
  std::string_view reason;
  std::string_view type;
  std::string_view code;
};

constexpr std::array<StatusRow, 16> kStatuses = {{
    {200, "OK", "", ""},
    {204, "No Content", "", ""},
    {400, "Bad Request", "invalid_request_error", "invalid_value"},
    {401, "Unauthorized", "authentication_error", "invalid_api_key"},
    {404, "Not Found", "not_found_error", "not_found"},
    {405, "Method Not Allowed", "invalid_request_error", "method_not_allowed"},
    {408, "Request Timeout", "timeout_error", "request_timeout"},
    {413, "Content Too Large", "invalid_request_error", "request_too_large"},
    {417, "Expectation Failed", "invalid_request_error", "expectation_failed"},
    {429, "Too Many Requests", "rate_limit_error", "queue_full"},
    {431, "Request Header Fields Too Large", "invalid_request_error", "headers_too_large"},
    {499, "Client Closed Request", "client_closed_request", "client_closed_request"},
    {500, "Internal Server Error", "internal_error", "internal_error"},
    {501, "Not Implemented", "invalid_request_error", "not_implemented"},
    {503, "Service Unavailable", "service_unavailable_error", "unavailable"},
    {504, "Gateway Timeout", "timeout_error", "deadline_exceeded"},
}};

const StatusRow& row_of(int status) {
  for (const StatusRow& row : kStatuses) {
    if (row.status == status) {
      return row;
    }
  }
  return row_of(500);
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kExhausted:
      return 429;
    case ErrorCode::kUnavailable:
    case ErrorCode::kCancelled:
      return 503;
    case ErrorCode::kDeadline:
      return 504;
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

}  // namespace

std::string ApiError::to_json() const {
  boost::json::object body;
  body["message"] = message;
  body["type"] = type;
  body["param"] = param.empty() ? boost::json::value(nullptr) : boost::json::value(param);
  body["code"] = code;
  return json_text(boost::json::object{{"error", std::move(body)}});
}

ApiError api_error(int status, std::string message) {
  const StatusRow& row = row_of(status);
  ApiError error;
  error.status = status;
  error.type = row.type;
  error.code = row.code;
  error.message = std::move(message);
  return error;
}

ApiError bad_request(std::string message, std::string param) {
  ApiError error = api_error(400, std::move(message));
  error.param = std::move(param);
  return error;
}

ApiError to_api_error(const Error& error) {
  ApiError out = api_error(status_of(error.code), error.message);
  out.param = error.param;
  if (error.code == ErrorCode::kUnsupported) {
    out.code = "unsupported";
  }
  return out;
}

std::string_view reason_phrase(int status) { return row_of(status).reason; }

}  // namespace headrace
