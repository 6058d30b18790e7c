// The program's version, as in CMakeLists.txt.
#pragma once

#include <string_view>

namespace headrace {

std::string_view version();

}  // namespace headrace
