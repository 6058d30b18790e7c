#include "engine/internal/output_processor.h"

#include <utility>

namespace headrace {

OutputProcessor::OutputProcessor(const Tokenizer& tokenizer,
                                 const std::vector<std::string>& stops,
                                 int min_tokens)
    : detokenizer_(tokenizer), stops_(stops), min_tokens_(min_tokens) {}

StopMatcher::Output OutputProcessor::match(std::string text) {
  if (num_tokens_ < min_tokens_) {
    return {std::move(text), std::nullopt};
  }
  return stops_.push(text);
}

StopMatcher::Output OutputProcessor::push(TokenId token) {
  ++num_tokens_;
  return match(detokenizer_.push(token));
}

StopMatcher::Output OutputProcessor::flush() {
  StopMatcher::Output output = match(detokenizer_.flush());
  if (!output.stop) {
    output.text += stops_.flush();
  }
  return output;
}

}  // namespace headrace
