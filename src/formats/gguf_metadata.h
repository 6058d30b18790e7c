// The keys and values of a GGUF file's header: where they lie in the file, and typed ways to read
// them. Values are views of the file's bytes, checked when the file was parsed (type, length, bools
// 0 or 1), and live as long as the file does. Constant once made: any thread. Getters convert where
// no value is lost, and otherwise return an error of one line that names the file and the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr std::uint32_t kNumGgufTypes = 13;

std::string_view gguf_type_name(GgufType type);  // "u32", "string"
std::size_t gguf_type_bytes(
    GgufType type);  // of one value; 0 for strings and arrays, whose size varies

struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element_type = GgufType::kU8;  // of an array; equal to type otherwise
  std::uint64_t count = 1;                // elements of an array; 1 otherwise
  // The value as stored, little-endian: a scalar; a string's characters; an array's elements one
  // after the other, each string of an array with its u64 length before it.
  std::span<const std::byte> bytes;

  bool is_array() const { return type == GgufType::kArray; }
  bool is_integer() const;        // a scalar of an integer type
  std::string type_name() const;  // "u32", "array of string"
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

class GgufMetadata {
 public:
  GgufMetadata() = default;
  explicit GgufMetadata(std::string file_name) : file_name_(std::move(file_name)) {}

  const std::string& file_name() const { return file_name_; }         // for messages
  const std::vector<GgufEntry>& entries() const { return entries_; }  // in the file's order
  const GgufValue* find(std::string_view key) const;  // null where the file has no such key
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // A missing key, another type or a value out of range is an error. Integers of any width and sign
  // are taken by u64 and i64; f32 takes F32 and F64.
  Result<std::uint64_t> u64(std::string_view key) const;
  Result<std::int64_t> i64(std::string_view key) const;
  Result<float> f32(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;

  // The same, with a value for a missing key; a wrong type is still an error.
  Result<std::uint64_t> u64_or(std::string_view key, std::uint64_t otherwise) const;
  Result<std::int64_t> i64_or(std::string_view key, std::int64_t otherwise) const;
  Result<float> f32_or(std::string_view key, float otherwise) const;
  Result<bool> boolean_or(std::string_view key, bool otherwise) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view otherwise) const;

  // Arrays. The strings are views of the file; the numbers are copied, since the file does not
  // align them. ints takes integers of any type, floats takes F32 and F64, bools takes bool.
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
  Result<std::vector<float>> floats(std::string_view key) const;
  Result<std::vector<std::int64_t>> ints(std::string_view key) const;
  Result<std::vector<bool>> bools(std::string_view key) const;

  // Adds an entry whose bytes are already checked. False where the key is there already.
  [[nodiscard]] bool add(std::string_view key, const GgufValue& value);

 private:
  Result<const GgufValue*> require(std::string_view key) const;
  Error mismatch(std::string_view key, const GgufValue& value, std::string_view wanted) const;

  std::string file_name_;
  std::vector<GgufEntry> entries_;
  std::map<std::string_view, std::size_t> index_;  // key -> entries_
};

}  // namespace headrace
