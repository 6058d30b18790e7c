#include "formats/gguf.h"

#include "formats/internal/gguf_parser.h"
#include "formats/internal/printable.h"

namespace headrace {

Result<GgufFile> GgufFile::open(const std::string& path) {
  HR_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  HR_ASSIGN_OR_RETURN(GgufFile file, GgufParser(mapped.bytes(), path).parse());
  file.file_ = std::move(mapped);
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string_view name) {
  return GgufParser(bytes, name).parse();
}

const TensorView* GgufFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<TensorView> GgufFile::tensor(std::string_view name) const {
  const TensorView* found = find(name);
  if (found == nullptr) {
    return make_error(
        ErrorCode::kCorrupt, "{}: tensor '{}' is missing", this->name(), printable(name));
  }
  return *found;
}

}  // namespace headrace
