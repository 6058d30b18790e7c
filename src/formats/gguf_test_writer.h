// For tests: a GGUF file in memory, with every field open to being set wrong. Nothing here checks
// anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "formats/gguf_metadata.h"

namespace headrace::testing_gguf {

class Bytes {
 public:
  template <typename T>
  Bytes& put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  Bytes& put_string(std::string_view text) {
    put<std::uint64_t>(text.size());
    return put_raw(text);
  }
  Bytes& put_raw(std::string_view text) {
    for (const char c : text) {
      bytes_.push_back(static_cast<std::byte>(c));
    }
    return *this;
  }
  Bytes& append(const Bytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  Bytes& pad_to(std::size_t multiple) {
    bytes_.resize((bytes_.size() + multiple - 1) / multiple * multiple);
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

template <typename T>
constexpr GgufType type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return GgufType::kU8;
  } else if constexpr (std::is_same_v<T, std::int8_t>) {
    return GgufType::kI8;
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return GgufType::kU16;
  } else if constexpr (std::is_same_v<T, std::int16_t>) {
    return GgufType::kI16;
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return GgufType::kU32;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return GgufType::kI32;
  } else if constexpr (std::is_same_v<T, float>) {
    return GgufType::kF32;
  } else if constexpr (std::is_same_v<T, bool>) {
    return GgufType::kBool;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return GgufType::kU64;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return GgufType::kI64;
  } else {
    static_assert(std::is_same_v<T, double>);
    return GgufType::kF64;
  }
}

template <typename T>
Bytes scalar(std::string_view key, T value) {
  return Bytes().put_string(key).put(type_of<T>()).put(value);
}

inline Bytes text(std::string_view key, std::string_view value) {
  return Bytes().put_string(key).put(GgufType::kString).put_string(value);
}

template <typename T>
Bytes array(std::string_view key, const std::vector<T>& values) {
  Bytes entry;
  entry.put_string(key)
      .put(GgufType::kArray)
      .put(type_of<T>())
      .template put<std::uint64_t>(values.size());
  for (const T value : values) {
    entry.put(value);
  }
  return entry;
}

inline Bytes texts(std::string_view key, const std::vector<std::string>& values) {
  Bytes entry;
  entry.put_string(key)
      .put(GgufType::kArray)
      .put(GgufType::kString)
      .put<std::uint64_t>(values.size());
  for (const std::string& value : values) {
    entry.put_string(value);
  }
  return entry;
}

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // innermost first, as GGUF stores them
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::optional<std::uint32_t> num_dims = {};  // where it should differ from dims.size()
};

struct File {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::vector<Bytes> entries;
  std::vector<Tensor> tensors;
  std::optional<std::uint64_t> num_entries = {};
  std::optional<std::uint64_t> num_tensors = {};
  std::size_t alignment = 32;
  std::size_t data_bytes = 0;

  // Where each section ends: magic, version, counts, each entry, each tensor's description,
  // padding, data.
  std::vector<std::size_t> borders;

  std::vector<std::byte> write() {
    Bytes out;
    borders.clear();
    const auto border = [&] { borders.push_back(out.size()); };
    out.put_raw(magic);
    border();
    out.put(version);
    border();
    out.put(num_tensors.value_or(tensors.size()));
    border();
    out.put(num_entries.value_or(entries.size()));
    border();
    for (const Bytes& entry : entries) {
      out.append(entry);
      border();
    }
    for (const Tensor& tensor : tensors) {
      out.put_string(tensor.name);
      border();
      out.put(tensor.num_dims.value_or(static_cast<std::uint32_t>(tensor.dims.size())));
      for (const std::uint64_t dim : tensor.dims) {
        out.put(dim);
      }
      border();
      out.put(tensor.type).put(tensor.offset);
      border();
    }
    out.pad_to(alignment);
    border();
    for (std::size_t i = 0; i < data_bytes; ++i) {
      out.put(static_cast<std::uint8_t>(i));
    }
    border();
    return out.bytes();
  }
};

}  // namespace headrace::testing_gguf
