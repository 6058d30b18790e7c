// A GGUF file (version 2 or 3), mapped and read in place: metadata and tensor views. The reader
// trusts nothing: every size, count, offset, type and alignment is checked against the file before
// anything is allocated, and a bad file is refused with one line that names the file and the field.
// What open() returns is consistent: views lie inside the file, do not overlap, are whole rows of
// whole blocks, and start at the file's alignment. Constant once made: any thread. Move-only; views
// live as long as the object (or, after parse, as long as the bytes). Source: the GGUF
// specification (ggml, docs/gguf.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/gguf_metadata.h"
#include "tensor/view.h"

namespace headrace {

class GgufFile {
 public:
  static Result<GgufFile> open(const std::string& path);

  // The same from bytes in memory, which the caller keeps alive. `name` stands for the file in
  // messages.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string_view name);

  GgufFile(GgufFile&&) noexcept = default;
  GgufFile& operator=(GgufFile&&) noexcept = default;
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;
  ~GgufFile() = default;

  const std::string& name() const { return metadata_.file_name(); }
  std::uint32_t version() const { return version_; }
  std::uint64_t alignment() const { return alignment_; }
  std::uint64_t data_offset() const {
    return data_offset_;
  }  // of the tensor data, from the file's start
  std::span<const std::byte> bytes() const { return bytes_; }  // the whole file

  const GgufMetadata& metadata() const { return metadata_; }

  // In the file's order. Shapes are outermost first, the reverse of GGUF's own order.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;     // null where the file has no such tensor
  Result<TensorView> tensor(std::string_view name) const;  // an error that names it

  // Gives the pages of a part of the mapping back to the system, once its weights are packed.
  // Nothing after parse().
  void drop(std::span<const std::byte> part) const { file_.drop(part); }

 private:
  friend class GgufParser;
  GgufFile() = default;

  MappedFile file_;                   // empty after parse()
  std::span<const std::byte> bytes_;  // the whole file
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 0;
  std::uint64_t data_offset_ = 0;
  GgufMetadata metadata_;
  std::vector<TensorView> tensors_;
  std::map<std::string_view, std::size_t> index_;  // name, as in bytes_ -> tensors_
};

}  // namespace headrace
