// Between JSON and template values.
#pragma once

#include <boost/json.hpp>

#include "chat/value.h"

namespace headrace::jinja {

// Every string, key or value, is untrusted.
Value from_json(const boost::json::value& json);

struct JsonStyle {
  bool ensure_ascii = false;
  bool indented = false;
  Text indent;  // of one level
  Text item_separator = Text::literal(", ");
  Text key_separator = Text::literal(": ");
  bool sort_keys = false;
};

// As Python's json.dumps; what it cannot write fails.
Text to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace headrace::jinja
