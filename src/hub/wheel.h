// Reads one file out of a Python wheel (a zip file, by libzip). The size is checked against the
// expected one before anything is read, memory is bounded by the buffer. Any thread, one call a
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"

namespace headrace {

using ByteSink = std::function<Status(std::span<const std::byte>)>;

// Gives the member's bytes to the sink, in order, at most 1 MiB at a time. kCorrupt when the zip
// file is damaged, has no such member, or one of another size. The sink's errors are passed on.
Status read_wheel_member(const std::string& wheel,
                         const std::string& member,
                         std::uint64_t bytes,
                         const ByteSink& sink);

}  // namespace headrace
