// Small text files that commands write whole.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

// kUnavailable: it cannot be written.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace headrace
