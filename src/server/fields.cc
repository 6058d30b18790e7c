#include "server/fields.h"

#include <cmath>
#include <utility>

namespace headrace {

namespace json = boost::json;

namespace {

// An integer, also one written as 3.0.
std::optional<std::int64_t> as_integer(const json::value& value) {
  if (const std::int64_t* signed_value = value.if_int64()) {
    return *signed_value;
  }
  if (const double* real = value.if_double();
      real != nullptr && std::floor(*real) == *real && std::abs(*real) <= 9007199254740992.0) {
    return static_cast<std::int64_t>(*real);
  }
  return std::nullopt;
}

}  // namespace

std::string_view kind_name(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "a list";
    case json::kind::object:
      return "an object";
  }
  return "a value";
}

FieldReader::FieldReader(const json::object& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const json::value* FieldReader::find(std::string_view name) {
  accept(name);
  const json::value* value = object_.if_contains({name.data(), name.size()});
  return value == nullptr || value->is_null() ? nullptr : value;
}

void FieldReader::fail(std::string_view name, std::string_view message, ErrorCode code) {
  accept(name);
  if (error_) {
    return;
  }
  error_ = make_error(code, "{}{}: {}", prefix_, name, message);
  error_->param = prefix_ + std::string(name);
}

bool FieldReader::boolean(std::string_view name, bool fallback) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_bool()) {
    fail(name, fmt::format("must be true or false, not {}", kind_name(*value)));
    return fallback;
  }
  return value->get_bool();
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name,
                                                 std::int64_t low,
                                                 std::int64_t high) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    fail(name, fmt::format("must be an integer, not {}", kind_name(*value)));
    return std::nullopt;
  }
  const std::optional<std::int64_t> integer = as_integer(*value);
  if (!integer && value->is_double() && std::floor(value->get_double()) != value->get_double()) {
    fail(name, "must be an integer");
    return std::nullopt;
  }
  if (!integer || *integer < low || *integer > high) {
    fail(name, fmt::format("must be from {} to {}", low, high));
    return std::nullopt;
  }
  return integer;
}

std::optional<double> FieldReader::number(std::string_view name, NumberRange range) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    fail(name, fmt::format("must be a number, not {}", kind_name(*value)));
    return std::nullopt;
  }
  const double number = value->to_number<double>();
  const bool above = range.open_low ? number > range.low : number >= range.low;
  if (!above || !(number <= range.high)) {
    fail(name,
         fmt::format("must be {} {} and at most {}",
                     range.open_low ? "above" : "at least",
                     range.low,
                     range.high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> FieldReader::text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    fail(name, fmt::format("must be a string, not {}", kind_name(*value)));
    return std::nullopt;
  }
  return std::string(value->get_string());
}

const json::object* FieldReader::object(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return nullptr;
  }
  if (!value->is_object()) {
    fail(name, fmt::format("must be an object, not {}", kind_name(*value)));
    return nullptr;
  }
  return &value->get_object();
}

const json::array* FieldReader::array(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return nullptr;
  }
  if (!value->is_array()) {
    fail(name, fmt::format("must be a list, not {}", kind_name(*value)));
    return nullptr;
  }
  return &value->get_array();
}

std::optional<std::vector<TokenId>> FieldReader::token_ids(std::string_view name, int vocab_size) {
  const json::array* list = array(name);
  if (list == nullptr) {
    return std::nullopt;
  }
  Result<std::vector<TokenId>> ids = to_token_ids(*list, vocab_size);
  if (!ids) {
    fail(name, ids.error().message);
    return std::nullopt;
  }
  return std::move(*ids);
}

std::vector<std::string> FieldReader::strings(std::string_view name, std::size_t max_items) {
  const json::value* value = find(name);
  if (value == nullptr) {
    return {};
  }
  std::vector<std::string> out;
  if (const json::string* one = value->if_string()) {
    out.emplace_back(*one);
  } else if (const json::array* list = value->if_array()) {
    if (list->size() > max_items) {
      fail(name, fmt::format("at most {} are allowed", max_items));
      return {};
    }
    for (const json::value& item : *list) {
      if (!item.is_string()) {
        fail(name, fmt::format("must hold strings, not {}", kind_name(item)));
        return {};
      }
      out.emplace_back(item.get_string());
    }
  } else {
    fail(name, fmt::format("must be a string or a list of strings, not {}", kind_name(*value)));
    return {};
  }
  for (const std::string& item : out) {
    if (item.empty()) {
      fail(name, "must not be empty");
    }
  }
  return out;
}

std::vector<std::string> FieldReader::unknown() const {
  std::vector<std::string> out;
  for (const auto& field : object_) {
    const std::string_view name(field.key().data(), field.key().size());
    if (!known_.contains(name)) {
      out.push_back(prefix_ + std::string(name));
    }
  }
  return out;
}

Result<std::vector<TokenId>> to_token_ids(const json::array& array, int vocab_size) {
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const json::value& item : array) {
    const std::optional<std::int64_t> id = as_integer(item);
    if (!id || *id < 0 || *id >= vocab_size) {
      return make_error(
          ErrorCode::kInvalidArgument, "token ids are integers from 0 to {}", vocab_size - 1);
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

}  // namespace headrace
