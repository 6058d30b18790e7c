// Takes typed fields out of a JSON object. The first field with a wrong type or range is remembered
// as the error (kind kInvalidArgument, Error::param = its name), later calls then go on with what
// they are given; null counts as absent. Fields nobody asked for are listed by unknown(). One
// thread; the object outlives the reader.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace headrace {

// A range of numbers; `open_low` leaves out the lower bound itself.
struct NumberRange {
  double low;
  double high;
  bool open_low = false;
};

class FieldReader {
 public:
  // Names in errors are `prefix` + name, e.g. "stream_options.".
  explicit FieldReader(const boost::json::object& object, std::string prefix = {});

  // The value if present and not null; counts as known.
  const boost::json::value* find(std::string_view name);

  bool boolean(std::string_view name, bool fallback);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view name, NumberRange range);
  std::optional<std::string> text(std::string_view name);
  const boost::json::object* object(std::string_view name);
  const boost::json::array* array(std::string_view name);
  // A list of ids in [0, vocab_size).
  std::optional<std::vector<TokenId>> token_ids(std::string_view name, int vocab_size);
  // A string or a list of strings; at most max_items, none empty.
  std::vector<std::string> strings(std::string_view name, std::size_t max_items);

  // Refuses the field: remembered unless an error already is.
  void fail(std::string_view name,
            std::string_view message,
            ErrorCode code = ErrorCode::kInvalidArgument);

  void fail_with(Error error) {
    if (!error_) {
      error_ = std::move(error);
    }
  }

  // Known, and read elsewhere or of no effect here.
  void accept(std::string_view name) { known_.insert(std::string(name)); }

  bool ok() const { return !error_.has_value(); }
  Status status() const { return error_ ? Status(*error_) : Status(); }
  // Fields (also null ones) that nobody asked for, with the prefix.
  std::vector<std::string> unknown() const;

 private:
  const boost::json::object& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

// A JSON list of ids in [0, vocab_size); the message of what is wrong otherwise.
Result<std::vector<TokenId>> to_token_ids(const boost::json::array& array, int vocab_size);

// "string", "number", ... as a person says it.
std::string_view kind_name(const boost::json::value& value);

}  // namespace headrace
