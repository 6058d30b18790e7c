#include "bench/resident.h"

#include <fstream>
#include <malloc.h>
#include <string>

namespace headrace {
namespace {

Result<std::size_t> read_status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) {
      return static_cast<std::size_t>(std::strtoull(line.c_str() + key.size(), nullptr, 10)) * 1024;
    }
  }
  return make_error(
      ErrorCode::kUnsupported, "/proc/self/status has no {}: resident memory cannot be read", key);
}

}  // namespace

Result<std::size_t> resident_bytes() { return read_status("VmRSS:"); }

Result<std::size_t> peak_resident_bytes() { return read_status("VmHWM:"); }

Status reset_peak_resident() {
  ::malloc_trim(0);
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  if (!file) {
    return make_error(
        ErrorCode::kUnsupported,
        "/proc/self/clear_refs cannot be written: the peak of resident memory cannot be measured");
  }
  return {};
}

}  // namespace headrace
