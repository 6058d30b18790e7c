#include "base/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

namespace headrace {
namespace {

std::size_t system_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kilobytes = 0;
  std::string unit;
  while (file >> key >> kilobytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") {
      return kilobytes * 1024;
    }
  }
  return std::numeric_limits<std::size_t>::max();
}

std::size_t cgroup_available() {
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream current_file("/sys/fs/cgroup/memory.current");
  std::size_t limit = 0;
  std::size_t current = 0;
  if (limit_file >> limit && current_file >> current) {  // "max" does not parse as a number
    return limit > current ? limit - current : 0;
  }
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace

std::size_t available_memory_bytes() { return std::min(system_available(), cgroup_available()); }

Result<std::size_t> parse_bytes(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  int shift = -1;
  if (unit.empty() || unit == "B") {
    shift = 0;
  } else if (unit == "K" || unit == "KiB") {
    shift = 10;
  } else if (unit == "M" || unit == "MiB") {
    shift = 20;
  } else if (unit == "G" || unit == "GiB") {
    shift = 30;
  }
  if (error != std::errc{} || shift < 0 ||
      number > std::numeric_limits<std::size_t>::max() >> shift) {
    return make_error(ErrorCode::kInvalidArgument, "'{}' is no size; write it as 512M or 4G", text);
  }
  return number << shift;
}

}  // namespace headrace
