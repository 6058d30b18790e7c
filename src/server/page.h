// The page at GET /: a chat with the model, its timings, in English and Chinese. One file, no other
// resources.
#pragma once

#include <string_view>

namespace headrace {

std::string_view chat_page();

}  // namespace headrace
