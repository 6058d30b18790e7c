// Reads a request's body as JSON, strictly: RFC 8259, UTF-8, no key twice in an object, no more
// than kMaxJsonDepth levels, no number beyond a double. Errors are kInvalidArgument and say where.
// Pure, any thread.
#pragma once

#include <boost/json.hpp>
#include <string_view>

#include "base/result.h"

namespace headrace {

inline constexpr int kMaxJsonDepth = 64;

Result<boost::json::value> parse_json(std::string_view text);

// The same, and it must be an object.
Result<boost::json::object> parse_json_object(std::string_view text);

}  // namespace headrace
