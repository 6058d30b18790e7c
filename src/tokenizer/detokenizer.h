// Turns a stream of tokens into a stream of text that never holds half a UTF-8 character.
//
// Up to three bytes of an unfinished character are held back until the next tokens complete it, or
// until flush(), where they become U+FFFD. concat(push(...)) + flush() == Tokenizer::decode(all
// tokens), exactly.
//
// One object per sequence, one thread at a time. The tokenizer must outlive it.
#pragma once

#include <string>

#include "base/ids.h"
#include "tokenizer/tokenizer.h"

namespace headrace {

class IncrementalDetokenizer {
 public:
  explicit IncrementalDetokenizer(const Tokenizer& tokenizer, SkipSpecial skip = SkipSpecial::kYes);

  // The text that is certain after this token; often "", never half a character.
  std::string push(TokenId id);

  // What was held back, as U+FFFD; the object then starts anew.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  SkipSpecial skip_;
  bool at_start_ = true;  // no byte of text was seen yet
  std::string held_;      // 0 to 3 bytes
};

}  // namespace headrace
