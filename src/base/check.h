// Checks for programmer errors: always on, they print the place and end the process. Whatever input
// or environment can cause is a Result (result.h), never a check.
#pragma once

namespace headrace {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace headrace

#define HR_CHECK(condition)               \
  (static_cast<bool>(condition) ? void(0) \
                                : ::headrace::check_failed(__FILE__, __LINE__, #condition))

// For invariants whose check costs time: on where HEADRACE_DCHECK is (dev and sanitizer builds).
#ifdef HEADRACE_DCHECK
#define HR_DCHECK(condition) HR_CHECK(condition)
#else
#define HR_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#endif
