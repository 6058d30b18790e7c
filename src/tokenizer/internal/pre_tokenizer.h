// The first two stages of byte-level BPE: normalization, then the split into words within which
// merges happen. What a pre-tokenizer does is data: a name, a regular expression, and whether the
// text is brought to NFC first.
//
//   smollm: each digit alone, then GPT-2's words (contractions in lower case; letters, or other
//   signs, with a space in
//           front). Hugging Face's Digits + ByteLevel in one expression: a digit ends a run of
//           spaces as the end does.
//   qwen2:  NFC; contractions in either case; letters with any one sign in front; each digit alone;
//   newlines apart.
//
// Which characters are letters and numbers follows Unicode 16, as the reference's regular
// expressions do, whatever the Unicode version of the PCRE2 at hand. Immutable after create(), any
// thread. Linear time: no expression nests repeats.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

class PreTokenizer {
 public:
  // kUnsupported for a name that is not known; the message lists those that are.
  static Result<PreTokenizer> create(std::string_view name);

  PreTokenizer(PreTokenizer&& other) noexcept;
  ~PreTokenizer();

  std::string normalize(std::string_view text) const;
  bool normalizes() const { return to_nfc_; }

  // Calls for each word, in order; together they are the whole text. Valid UTF-8, shorter than 2
  // GiB.
  void for_each_word(std::string_view text,
                     const std::function<void(std::string_view)>& call) const;

 private:
  struct Pattern;  // PCRE2's compiled expression

  PreTokenizer(std::unique_ptr<const Pattern> pattern, bool to_nfc);

  std::unique_ptr<const Pattern> pattern_;
  bool to_nfc_ = false;
};

}  // namespace headrace
