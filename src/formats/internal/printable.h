// Names from a file, made fit for a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// The text with invalid UTF-8 and control characters as \xNN, cut after 80 bytes with "..." behind.
std::string printable(std::string_view text);

}  // namespace headrace
