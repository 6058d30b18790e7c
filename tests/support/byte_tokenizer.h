// A byte-level vocabulary for tests: token b is byte b, 256 is the end token, then whole words,
// which only decoding uses.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace headrace::testing {

inline constexpr TokenId kEndToken = 256;
inline constexpr TokenId kFirstWord = 257;

std::shared_ptr<const Tokenizer> make_byte_tokenizer(const std::vector<std::string>& words = {});

std::vector<TokenId> bytes_of(std::string_view text);

}  // namespace headrace::testing
