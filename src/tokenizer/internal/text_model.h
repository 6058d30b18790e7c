// One family of tokenizers: what turns the text between special tokens into ids. Two exist,
// byte-level BPE and SentencePiece BPE. Immutable after creation, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace headrace {

class TextModel {
 public:
  virtual ~TextModel() = default;

  // The text as this family searches it for special tokens and encodes it ("▁" for a space, where
  // it writes so).
  virtual std::string escape(std::string_view text) const = 0;

  // Appends the ids of escaped text that holds no special token. Valid UTF-8, shorter than 2 GiB.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) const = 0;

  // The bytes token `id` stands for; id is in the vocabulary.
  virtual std::string token_bytes(TokenId id) const = 0;

  // For a bound on how few tokens a text can become: of `text`, not yet escaped and valid UTF-8, at
  // least so many bytes end up in tokens, and token `id` takes at most so many of them. Linear, far
  // cheaper than encode().
  virtual std::size_t least_bytes(std::string_view text) const = 0;
  virtual std::size_t most_bytes(TokenId id) const = 0;

  // Whether encode() puts a space in front that decoding has to take away.
  virtual bool adds_leading_space() const = 0;
};

}  // namespace headrace
