// JSON as text, the one way this program writes it: compact, legal (RFC 8259) whatever the value
// holds. Doubles are written in the shortest form that reads back the same (0.393, 1e-07), always
// recognizable as such (1.0); a number that is not finite is null; bytes that are not UTF-8 become
// U+FFFD, in keys too. Pure functions, any thread.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

namespace headrace {

std::string json_text(const boost::json::value& value);
std::string json_text(const boost::json::object& object);
std::string json_text(const boost::json::array& array);

// A text between quotes.
std::string json_quoted(std::string_view text);

}  // namespace headrace
