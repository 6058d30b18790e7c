// The alphabet of byte-level BPE (Radford et al. 2019): each byte is written as one printable
// character, so that a vocabulary of strings can hold any bytes. Printable bytes of Latin-1 stand
// for themselves, the 68 others for U+0100 and up, in order. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

char32_t byte_to_alphabet(unsigned char byte);

// "Ġthe" is " the". Text with a character outside of the alphabet stands for itself (special tokens
// may).
std::string from_byte_alphabet(std::string_view text);

// " the" is "Ġthe".
std::string to_byte_alphabet(std::string_view bytes);

}  // namespace headrace
