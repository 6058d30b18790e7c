// This process's resident memory and its peak, as the kernel counts them. The peak can be started
// anew, so that what one piece of work needed can be read from it. Linux (proc(5)); the counters
// are some pages coarse.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace headrace {

Result<std::size_t> resident_bytes();
// Since the last reset_peak_resident(), or since the process began.
Result<std::size_t> peak_resident_bytes();
// Freed memory goes back to the system first, so that it is not there for the taking uncounted.
Status reset_peak_resident();

}  // namespace headrace
