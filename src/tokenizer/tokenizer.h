// Text to token ids and back, from the vocabulary inside a model file. The target is Hugging Face
// tokenizers' ids.
//
// Two families: byte-level BPE (model "gpt2", pre-tokenizers "smollm" and "qwen2") and
// SentencePiece BPE with byte fallback (model "llama"). Anything else is refused by name in
// create().
//
// Which text becomes a special token:
//   * control and unknown tokens (<|im_start|>, <bos>, <unk>) only where the text is trusted: the
//   chat template's own
//     literals, or a caller that asks for SpecialTokens::kParse. Typed into a message they are
//     plain text.
//   * user-defined tokens (Gemma's runs of newlines and spaces, Qwen's <tool_call>) in any text, as
//   Hugging Face does
//     with added tokens that are not special.
//   * the longest token wins, leftmost first. A control token lies wholly inside one trusted
//   stretch.
// Between such tokens the text is one string, whoever wrote it: words and merges cross a border of
// trust.
//
// Bytes that are not UTF-8 are read as U+FFFD, one for each maximal invalid part; adjacent pieces
// of equal trust are joined before that is decided. Characters that a byte-level vocabulary has no
// byte for are dropped, as the reference does. Time is O(n log n) in the text, whatever it holds.
//
// Immutable after create(); every method may be called from any thread. Ids out of range are no
// error: they stand for no bytes. Sources: Sennrich et al. 2016 (BPE), Radford et al. 2019
// (byte-level BPE), Kudo and Richardson 2018 (SentencePiece).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "formats/tokenizer_data.h"

namespace headrace {

// A part of a prompt and who wrote it: the template (trusted) or a user.
struct TextPiece {
  std::string_view text;
  bool trusted = false;
};

enum class SpecialTokens { kText, kParse };

// Whether the beginning-of-sequence token is put in front. It is never doubled where the (trusted)
// text starts with it, and never added where the vocabulary has none. kAsModelSays follows the
// file's add_bos.
enum class AddBos { kNo, kYes, kAsModelSays };

// Whether decoded text leaves out control and unknown tokens.
enum class SkipSpecial { kNo, kYes };

class Tokenizer {
 public:
  // Errors: kCorrupt for data that contradicts itself (an empty vocabulary, one kind too few, a
  // merge of a token that is not there), kUnsupported for a model or pre-tokenizer that is not
  // known. Of equal tokens the first counts.
  static Result<std::unique_ptr<Tokenizer>> create(TokenizerData data);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  std::vector<TokenId> encode(std::span<const TextPiece> pieces, AddBos add_bos) const;
  std::vector<TokenId> encode(std::string_view text, SpecialTokens special, AddBos add_bos) const;

  // A number that encode() of these pieces never goes below, for refusing what is far too long
  // before the work is done: bytes over the most that one token takes. 0 where nothing is known.
  // Linear.
  std::size_t least_tokens(std::span<const TextPiece> pieces) const;

  // The bytes this token stands for; half a character is possible. Control tokens give their name.
  std::string token_bytes(TokenId id) const;

  // The text of these tokens, always valid UTF-8: each maximal invalid part is U+FFFD. Where
  // encoding put a space in front (SentencePiece with add_space_prefix), one leading space is taken
  // away.
  std::string decode(std::span<const TokenId> ids, SkipSpecial skip) const;

  int vocab_size() const;
  TokenId bos_id() const;  // -1: none
  TokenId eos_id() const;  // -1: none
  bool adds_bos() const;   // the file's add_bos

  // The token as the file writes it ("Ġthe", "▁the", "<0x0A>"); "" for ids out of range.
  std::string_view piece(TokenId id) const;
  TokenKind kind(TokenId id) const;  // kUnused for ids out of range

  // Control or unknown: never part of an answer's text.
  bool is_control(TokenId id) const;

  // Ends an answer: the file's eos and eot, and every control or user-defined token named
  // <|im_end|>, <|endoftext|>,
  // <|end_of_text|>, <|eot_id|>, <|eom_id|>, <|end|>, <|return|>, <|call|>, <end_of_turn>, <eos>,
  // </s> or <｜end▁of▁sentence｜>.
  bool is_end_of_generation(TokenId id) const;

 private:
  friend class IncrementalDetokenizer;
  struct Impl;

  explicit Tokenizer(std::unique_ptr<Impl> impl);

  // Whether the first space of a text is the one that encoding put there.
  bool drops_leading_space() const;

  std::unique_ptr<const Impl> impl_;
};

}  // namespace headrace
