#include "formats/gguf_metadata.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "base/check.h"
#include "formats/internal/printable.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and read in place");

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeInfo, kNumGgufTypes> kTypes = {{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

bool is_integer_type(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kU16:
    case GgufType::kI16:
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kU64:
    case GgufType::kI64:
      return true;
    default:
      return false;
  }
}

bool is_float_type(GgufType type) { return type == GgufType::kF32 || type == GgufType::kF64; }

// The integer at `from`; none for a u64 above the largest i64.
std::optional<std::int64_t> load_integer(GgufType type, const std::byte* from) {
  switch (type) {
    case GgufType::kU8:
      return load<std::uint8_t>(from);
    case GgufType::kI8:
      return load<std::int8_t>(from);
    case GgufType::kU16:
      return load<std::uint16_t>(from);
    case GgufType::kI16:
      return load<std::int16_t>(from);
    case GgufType::kU32:
      return load<std::uint32_t>(from);
    case GgufType::kI32:
      return load<std::int32_t>(from);
    case GgufType::kI64:
      return load<std::int64_t>(from);
    default: {
      const auto value = load<std::uint64_t>(from);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return std::nullopt;
      }
      return static_cast<std::int64_t>(value);
    }
  }
}

float load_float(GgufType type, const std::byte* from) {
  return type == GgufType::kF32 ? load<float>(from) : static_cast<float>(load<double>(from));
}

std::string_view characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::size_t gguf_type_bytes(GgufType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

bool GgufValue::is_integer() const { return is_integer_type(type); }

std::string GgufValue::type_name() const {
  return is_array() ? fmt::format("array of {}", gguf_type_name(element_type))
                    : std::string(gguf_type_name(type));
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

bool GgufMetadata::add(std::string_view key, const GgufValue& value) {
  const bool is_new = index_.emplace(key, entries_.size()).second;
  if (is_new) {
    entries_.push_back({key, value});
  }
  return is_new;
}

Result<const GgufValue*> GgufMetadata::require(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return make_error(ErrorCode::kCorrupt, "{}: key '{}' is missing", file_name_, printable(key));
  }
  return value;
}

Error GgufMetadata::mismatch(std::string_view key,
                             const GgufValue& value,
                             std::string_view wanted) const {
  return make_error(ErrorCode::kCorrupt,
                    "{}: key '{}' holds {}, not {}",
                    file_name_,
                    printable(key),
                    value.type_name(),
                    wanted);
}

Result<std::uint64_t> GgufMetadata::u64(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!value->is_integer()) {
    return mismatch(key, *value, "an integer");
  }
  if (value->type == GgufType::kU64) {
    return load<std::uint64_t>(value->bytes.data());
  }
  const std::int64_t integer = *load_integer(value->type, value->bytes.data());
  if (integer < 0) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: key '{}' is {}, but may not be negative",
                      file_name_,
                      printable(key),
                      integer);
  }
  return static_cast<std::uint64_t>(integer);
}

Result<std::int64_t> GgufMetadata::i64(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!value->is_integer()) {
    return mismatch(key, *value, "an integer");
  }
  const std::optional<std::int64_t> integer = load_integer(value->type, value->bytes.data());
  if (!integer) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: key '{}' is {}, above the largest signed integer",
                      file_name_,
                      printable(key),
                      load<std::uint64_t>(value->bytes.data()));
  }
  return *integer;
}

Result<float> GgufMetadata::f32(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!is_float_type(value->type)) {
    return mismatch(key, *value, "a float");
  }
  return load_float(value->type, value->bytes.data());
}

Result<bool> GgufMetadata::boolean(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kBool) {
    return mismatch(key, *value, "a bool");
  }
  return value->bytes[0] != std::byte{0};
}

Result<std::string_view> GgufMetadata::string(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kString) {
    return mismatch(key, *value, "a string");
  }
  return characters(value->bytes);
}

Result<std::uint64_t> GgufMetadata::u64_or(std::string_view key, std::uint64_t otherwise) const {
  return has(key) ? u64(key) : Result<std::uint64_t>(otherwise);
}

Result<std::int64_t> GgufMetadata::i64_or(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? i64(key) : Result<std::int64_t>(otherwise);
}

Result<float> GgufMetadata::f32_or(std::string_view key, float otherwise) const {
  return has(key) ? f32(key) : Result<float>(otherwise);
}

Result<bool> GgufMetadata::boolean_or(std::string_view key, bool otherwise) const {
  return has(key) ? boolean(key) : Result<bool>(otherwise);
}

Result<std::string_view> GgufMetadata::string_or(std::string_view key,
                                                 std::string_view otherwise) const {
  return has(key) ? string(key) : Result<std::string_view>(otherwise);
}

Result<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!value->is_array() || value->element_type != GgufType::kString) {
    return mismatch(key, *value, "an array of strings");
  }
  std::vector<std::string_view> result;
  result.reserve(value->count);
  std::span<const std::byte> rest = value->bytes;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto length = static_cast<std::size_t>(load<std::uint64_t>(rest.data()));
    rest = rest.subspan(sizeof(std::uint64_t));
    result.push_back(characters(rest.first(length)));
    rest = rest.subspan(length);
  }
  return result;
}

Result<std::vector<float>> GgufMetadata::floats(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!value->is_array() || !is_float_type(value->element_type)) {
    return mismatch(key, *value, "an array of floats");
  }
  std::vector<float> result(value->count);
  const std::size_t step = gguf_type_bytes(value->element_type);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = load_float(value->element_type, value->bytes.data() + i * step);
  }
  return result;
}

Result<std::vector<std::int64_t>> GgufMetadata::ints(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!value->is_array() || !is_integer_type(value->element_type)) {
    return mismatch(key, *value, "an array of integers");
  }
  std::vector<std::int64_t> result(value->count);
  const std::size_t step = gguf_type_bytes(value->element_type);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto integer = load_integer(value->element_type, value->bytes.data() + i * step);
    if (!integer) {
      return make_error(ErrorCode::kCorrupt,
                        "{}: key '{}': element {} is above the largest signed integer",
                        file_name_,
                        printable(key),
                        i);
    }
    result[i] = *integer;
  }
  return result;
}

Result<std::vector<bool>> GgufMetadata::bools(std::string_view key) const {
  HR_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (!value->is_array() || value->element_type != GgufType::kBool) {
    return mismatch(key, *value, "an array of bools");
  }
  std::vector<bool> result(value->count);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = value->bytes[i] != std::byte{0};
  }
  return result;
}

}  // namespace headrace
