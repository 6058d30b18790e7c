// A file mapped read-only. The bytes stay valid as long as the object lives; a file that another
// process truncates meanwhile ends this one with SIGBUS, as everywhere. Move-only. Reading is safe
// from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace headrace {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Gives the pages of this part back to the system; reading them again loads them from the file.
  void drop(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
};

}  // namespace headrace
