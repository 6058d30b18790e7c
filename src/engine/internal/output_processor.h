// From generated tokens to text that a client may see: whole characters, without stop strings. Owns
// the detokenizer's and the stop matcher's state of one sequence. One thread at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/internal/stop_matcher.h"
#include "tokenizer/detokenizer.h"

namespace headrace {

class OutputProcessor {
 public:
  // The text of the first min_tokens - 1 tokens is not searched for stops.
  OutputProcessor(const Tokenizer& tokenizer,
                  const std::vector<std::string>& stops,
                  int min_tokens);

  // Text that became final with this token, and the stop if one is complete; then the sequence
  // ends.
  StopMatcher::Output push(TokenId token);
  // What was held back, at the end of a sequence that no stop string ended. Half a character may
  // complete a stop.
  StopMatcher::Output flush();

 private:
  StopMatcher::Output match(std::string text);

  IncrementalDetokenizer detokenizer_;
  StopMatcher stops_;
  int min_tokens_;
  int num_tokens_ = 0;
};

}  // namespace headrace
