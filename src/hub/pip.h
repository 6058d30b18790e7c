// Runs pip as a child process to fetch one wheel. Which index, which proxy, which certificates:
// pip's own settings. No shell is involved; nothing is printed. Any thread, one call a folder; pip
// is killed should that thread end before it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace {

struct PipDownload {
  std::vector<std::string>
      pip;                  // the command, e.g. python3 -m pip; its first word is looked up in PATH
  std::string requirement;  // PACKAGE==VERSION
  std::string dir;          // an existing empty folder for the wheel and pip's temporary files
};

// Fetches the wheel and returns its path. While pip runs, on_bytes is told now and then how many
// bytes the folder holds. When pip fails the error is pip's own last word, with advice.
Result<std::string> pip_download(const PipDownload& download,
                                 const std::function<void(std::uint64_t)>& on_bytes);

// One line out of what pip printed: its last error, else its last line.
std::string last_error_line(const std::string& log);

}  // namespace headrace
