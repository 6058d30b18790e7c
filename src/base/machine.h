// What this machine gives to the process: memory, and sizes as people write them.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace headrace {

// Memory that can be taken without swapping: the system's available memory, or what the cgroup
// leaves, if less.
std::size_t available_memory_bytes();

// "512M", "4G", "1024K", "4GiB", "100000": powers of 1024. kInvalidArgument for anything else.
Result<std::size_t> parse_bytes(std::string_view text);

}  // namespace headrace
