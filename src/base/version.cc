#include "base/version.h"

#ifndef HEADRACE_VERSION
#error "HEADRACE_VERSION comes from CMakeLists.txt"
#endif

namespace headrace {

std::string_view version() { return HEADRACE_VERSION; }

}  // namespace headrace
