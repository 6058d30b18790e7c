// The parts that both descriptions of a file show.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string_view>

#include "formats/gguf.h"

namespace headrace {

inline constexpr std::uint64_t kLongArray = 16;

struct TypeTotal {
  std::uint64_t num_tensors = 0;
  std::uint64_t num_bytes = 0;
};

struct Totals {
  std::uint64_t num_values = 0;  // parameters
  std::uint64_t num_bytes = 0;
  std::map<std::string_view, TypeTotal> types;  // by name
};

Totals totals_of(const GgufFile& file);
boost::json::value value_json(const GgufMetadata& metadata, const GgufEntry& entry);
boost::json::value tokenizer_json(const GgufFile& file);

}  // namespace headrace
