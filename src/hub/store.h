// Where fetched models lie: one file NAME.gguf each, made whole or not at all. Beside it may stand
// NAME.gguf.partial (the parts fetched so far, joined), NAME.lock (an empty file, kept) and
// NAME.fetch (a folder for what is under way). Functions are safe from any thread; StoreLock
// excludes other processes and other locks of this one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/unique_fd.h"

namespace headrace {

// $HEADRACE_HOME/models, else $XDG_CACHE_HOME/headrace/models, else $HOME/.cache/headrace/models.
// An empty variable counts as unset.
Result<std::string> default_store_dir();

struct StorePaths {
  StorePaths(const std::string& store_dir, std::string_view name);

  std::string model;
  std::string partial;
  std::string lock;
  std::string fetch_dir;
};

// Makes the folder and those above it.
Status make_store_dir(const std::string& dir);

class StoreLock {
 public:
  // Waits until the lock is free; calls on_wait once if it is not free at once.
  static Result<StoreLock> acquire(const std::string& path, const std::function<void()>& on_wait);

 private:
  explicit StoreLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;  // the lock goes with it
};

// An error of the system about this path, with advice where the cause is known (full disk, no
// permission).
Error system_error(std::string_view action, const std::string& path, int error_number);

}  // namespace headrace
