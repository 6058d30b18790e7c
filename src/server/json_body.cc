#include "server/json_body.h"

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace headrace {
namespace {

namespace json = boost::json;

// Builds the value and looks at what the library's own parser lets pass: repeated keys and infinite
// numbers. The names of its members are the library's.
// NOLINTBEGIN(readability-identifier-naming)
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);
  // NOLINTEND(readability-identifier-naming)

  bool on_document_begin(json::error_code& /*ec*/) { return true; }
  bool on_document_end(json::error_code& /*ec*/) { return true; }
  bool on_object_begin(json::error_code& /*ec*/) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t size, json::error_code& /*ec*/) {
    keys_.pop_back();
    stack_.push_object(size);
    return true;
  }
  bool on_array_begin(json::error_code& /*ec*/) { return true; }
  bool on_array_end(std::size_t size, json::error_code& /*ec*/) {
    stack_.push_array(size);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t /*size*/, json::error_code& /*ec*/) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t /*size*/, json::error_code& ec) {
    key_.append(part.data(), part.size());
    stack_.push_key(part);
    if (!keys_.back().insert(key_).second) {
      problem_ = fmt::format("the key \"{}\" stands twice in one object", key_);
      ec = json::error::syntax;
      return false;
    }
    key_.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t /*size*/, json::error_code& /*ec*/) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t /*size*/, json::error_code& /*ec*/) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t value, json::string_view /*part*/, json::error_code& /*ec*/) {
    stack_.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, json::string_view /*part*/, json::error_code& /*ec*/) {
    stack_.push_uint64(value);
    return true;
  }
  bool on_double(double value, json::string_view /*part*/, json::error_code& ec) {
    if (!std::isfinite(value)) {
      problem_ = "a number is too large";
      ec = json::error::exponent_overflow;
      return false;
    }
    stack_.push_double(value);
    return true;
  }
  bool on_bool(bool value, json::error_code& /*ec*/) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code& /*ec*/) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }
  bool on_comment(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }

  void begin() { stack_.reset(); }
  json::value take() { return stack_.release(); }
  const std::string& problem() const { return problem_; }

 private:
  json::value_stack stack_;
  std::vector<std::unordered_set<std::string>> keys_;
  std::string key_;
  std::string problem_;
};

Error json_error(std::string what) {
  return make_error(ErrorCode::kInvalidArgument, "the body is not valid JSON: {}", what);
}

}  // namespace

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::basic_parser<Handler> parser(options);
  parser.handler().begin();
  json::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!parser.handler().problem().empty()) {
    return json_error(parser.handler().problem());
  }
  if (ec == json::error::too_deep) {
    return json_error(fmt::format("it is nested deeper than {} levels", kMaxJsonDepth));
  }
  if (ec) {
    return json_error(fmt::format("{} at byte {}", ec.message(), used));
  }
  if (text.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    return json_error(fmt::format("extra data at byte {}", used));
  }
  return parser.handler().take();
}

Result<json::object> parse_json_object(std::string_view text) {
  HR_ASSIGN_OR_RETURN(json::value value, parse_json(text));
  json::object* object = value.if_object();
  if (object == nullptr) {
    return make_error(ErrorCode::kInvalidArgument, "the body must be a JSON object");
  }
  return std::move(*object);
}

}  // namespace headrace
