#include "hub/store.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <system_error>

namespace headrace {
namespace {

// The variable's value, or empty.
std::string environment(const char* name) {
  const char* value =
      std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Result<std::string> default_store_dir() {
  if (const std::string home = environment("HEADRACE_HOME"); !home.empty()) {
    return home + "/models";
  }
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/headrace/models";
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return home + "/.cache/headrace/models";
  }
  return make_error(
      ErrorCode::kInvalidArgument,
      "no place for models: neither HEADRACE_HOME nor HOME is set; set HEADRACE_HOME to a folder");
}

StorePaths::StorePaths(const std::string& store_dir, std::string_view name)
    : model(fmt::format("{}/{}.gguf", store_dir, name)),
      partial(fmt::format("{}/{}.gguf.partial", store_dir, name)),
      lock(fmt::format("{}/{}.lock", store_dir, name)),
      fetch_dir(fmt::format("{}/{}.fetch", store_dir, name)) {}

Status make_store_dir(const std::string& dir) {
  std::error_code failure;
  std::filesystem::create_directories(dir, failure);
  if (failure) {
    return system_error("cannot make folder", dir, failure.value());
  }
  return {};
}

Result<StoreLock> StoreLock::acquire(const std::string& path,
                                     const std::function<void()>& on_wait) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    return system_error("cannot open", path, errno);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    return StoreLock(std::move(fd));
  }
  if (errno != EWOULDBLOCK && errno != EINTR) {
    return system_error("cannot lock", path, errno);
  }
  on_wait();
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) {
      return system_error("cannot lock", path, errno);
    }
  }
  return StoreLock(std::move(fd));
}

Error system_error(std::string_view action, const std::string& path, int error_number) {
  std::string_view advice;
  ErrorCode code = ErrorCode::kUnavailable;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      advice = "; free some space, or set HEADRACE_HOME to a folder on another disk";
      code = ErrorCode::kExhausted;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      advice = "; set HEADRACE_HOME to a folder that you may write";
      break;
    default:
      break;
  }
  return make_error(
      code, "{}: {}: {}{}", path, action, std::generic_category().message(error_number), advice);
}

}  // namespace headrace
