// One pass over a GGUF file: header, metadata, tensor descriptions, then what they say about each
// other. Used once, by GgufFile. Nothing is read past the end, and nothing is allocated from a
// count that the bytes left cannot hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"

namespace headrace {

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view name);

  Result<GgufFile> parse();

 private:
  // A tensor's offset and size in the file, for the checks among tensors.
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t tensor_idx = 0;
  };

  std::uint64_t left() const { return bytes_.size() - at_; }

  // Each takes the next bytes of the file; `what` names the field in the message when the file ends
  // before them.
  template <typename T>
  Result<T> take(std::string_view what);
  Result<std::string_view> take_string(std::string_view what);

  Status parse_header();
  Status parse_entry(std::uint64_t entry_idx);
  Result<GgufValue> parse_value(std::string_view what);
  Result<GgufValue> parse_array(std::string_view what);
  Status check_bools(const GgufValue& value, std::string_view what) const;
  Status check_general_keys();
  Status parse_tensor(std::uint64_t tensor_idx);
  Status parse_shape(TensorView& tensor, std::string_view what);
  Status parse_type(TensorView& tensor, std::string_view what);
  Result<std::uint64_t> data_bytes(const TensorView& tensor, std::string_view what) const;
  Status place_tensors();
  Status check_overlaps() const;

  template <typename... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kCorrupt, format, std::forward<Args>(args)...).within(name_);
  }
  template <typename... Args>
  Error unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kUnsupported, format, std::forward<Args>(args)...).within(name_);
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  std::uint64_t at_ = 0;  // <= bytes_.size(), always
  std::uint64_t num_entries_ = 0;
  std::uint64_t num_tensors_ = 0;
  std::vector<Extent>
      extents_;  // one per tensor; begin is relative to the tensor data until place_tensors()
  GgufFile file_;
};

}  // namespace headrace
