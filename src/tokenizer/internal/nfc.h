// Unicode normalization form C (UAX #15) as Hugging Face tokenizers performs it: its tables are of
// Unicode 10, so that combining marks of later versions keep their place. Pure; linear but for the
// sort of a run of combining marks, which is n log n.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// `text` is valid UTF-8.
std::string nfc(std::string_view text);

}  // namespace headrace
