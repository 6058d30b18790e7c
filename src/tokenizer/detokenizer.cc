#include "tokenizer/detokenizer.h"

#include <utility>

#include "base/utf8.h"

namespace headrace {

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer& tokenizer, SkipSpecial skip)
    : tokenizer_(&tokenizer), skip_(skip) {}

std::string IncrementalDetokenizer::push(TokenId id) {
  if (skip_ == SkipSpecial::kYes && tokenizer_->is_control(id)) {
    return {};
  }
  std::string bytes = tokenizer_->token_bytes(id);
  if (bytes.empty()) {
    return {};
  }
  if (at_start_ && tokenizer_->drops_leading_space() && bytes[0] == ' ') {
    bytes.erase(0, 1);
  }
  at_start_ = false;
  std::string text = std::exchange(held_, {}) + bytes;
  const std::size_t certain = text.size() - incomplete_utf8_suffix(text);
  held_ = text.substr(certain);
  text.resize(certain);
  return replace_invalid_utf8(text);
}

std::string IncrementalDetokenizer::flush() {
  at_start_ = true;
  return replace_invalid_utf8(std::exchange(held_, {}));
}

}  // namespace headrace
