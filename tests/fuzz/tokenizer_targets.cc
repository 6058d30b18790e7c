#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "base/utf8.h"
#include "fuzz/targets.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/test_vocabularies.h"
#include "tokenizer/tokenizer.h"

namespace headrace::fuzz {
namespace {

// Takes values from bytes; zeros where they have run out.
class ByteSource {
 public:
  explicit ByteSource(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }

  std::uint8_t byte() {
    if (bytes_.empty()) {
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }

  template <typename T>
  T value() {
    T out{};
    std::memcpy(&out, bytes_.data(), std::min(sizeof(T), bytes_.size()));
    bytes_.remove_prefix(std::min(sizeof(T), bytes_.size()));
    return out;
  }

  // A length in one byte, then as many.
  std::string text() {
    const std::size_t wanted = byte();
    const std::size_t size = std::min(wanted, bytes_.size());
    std::string out(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view bytes_;
};

// Stretches of changing trust, cut wherever the input says, also inside characters.
std::vector<TextPiece> cut_in_pieces(ByteSource source) {
  const auto step = static_cast<std::size_t>(source.byte()) + 1;
  const std::string_view text = source.rest();
  std::vector<TextPiece> pieces;
  for (std::size_t at = 0; at < text.size(); at += step) {
    pieces.push_back({text.substr(at, step), pieces.size() % 3 != 1});
  }
  return pieces;
}

void check_text(const Tokenizer& tokenizer, std::span<const TextPiece> pieces) {
  for (const AddBos add_bos : {AddBos::kNo, AddBos::kAsModelSays}) {
    const std::vector<TokenId> ids = tokenizer.encode(pieces, add_bos);
    EXPECT_LE(tokenizer.least_tokens(pieces), ids.size());
    for (const TokenId id : ids) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, tokenizer.vocab_size());
    }
    for (const SkipSpecial skip : {SkipSpecial::kNo, SkipSpecial::kYes}) {
      const std::string whole = tokenizer.decode(ids, skip);
      EXPECT_EQ(find_invalid_utf8(whole), std::string::npos);
      IncrementalDetokenizer detokenizer(tokenizer, skip);
      std::string streamed;
      for (const TokenId id : ids) {
        const std::string part = detokenizer.push(id);
        EXPECT_EQ(find_invalid_utf8(part), std::string::npos);
        streamed += part;
      }
      EXPECT_EQ(streamed + detokenizer.flush(), whole);
    }
  }
}

// Ids from outside, as a client may send them to be decoded.
void check_any_ids(const Tokenizer& tokenizer, ByteSource source) {
  std::vector<TokenId> ids;
  while (!source.empty() && ids.size() < 256) {
    ids.push_back(source.value<TokenId>());
  }
  EXPECT_EQ(find_invalid_utf8(tokenizer.decode(ids, SkipSpecial::kNo)), std::string::npos);
  for (const TokenId id : ids) {
    static_cast<void>(tokenizer.kind(id));
    static_cast<void>(tokenizer.piece(id));
    static_cast<void>(tokenizer.is_end_of_generation(id));
  }
}

TokenizerData data_from(ByteSource& source) {
  constexpr auto kModels = std::to_array<std::string_view>({"gpt2", "llama", "bert", ""});
  constexpr auto kPres = std::to_array<std::string_view>({"smollm", "qwen2", "default", ""});
  TokenizerData data;
  const std::uint8_t start = source.byte();
  // Often a good vocabulary to begin with, so that not everything is refused at once.
  if ((start & 1U) != 0) {
    data = (start & 2U) != 0 ? byte_level_data() : sentencepiece_data();
  } else {
    data.model = kModels[(start >> 1U) % kModels.size()];
    data.pre = kPres[(start >> 3U) % kPres.size()];
  }
  const std::uint8_t flags = source.byte();
  data.add_bos = (flags & 1U) != 0;
  data.add_eos = (flags & 2U) != 0;
  data.add_space_prefix = (flags & 4U) != 0;
  if ((flags & 8U) != 0) {
    for (TokenId* const id :
         {&data.bos_id, &data.eos_id, &data.eot_id, &data.unk_id, &data.pad_id}) {
      *id = source.value<std::int16_t>();
    }
  }
  if ((flags & 16U) != 0) {
    data.scores.resize(source.byte());
  }
  for (std::size_t left = source.byte(); left > 0 && !source.empty(); --left) {
    data.tokens.push_back(source.text());
    const std::uint8_t kind = source.byte();
    data.kinds.push_back(static_cast<TokenKind>(kind < 128 ? 1 + kind % 6 : kind));
    if (!data.scores.empty() || data.model == "llama") {
      data.scores.push_back(source.value<float>());
    }
  }
  for (std::size_t left = source.byte(); left > 0 && !source.empty(); --left) {
    data.merges.push_back(source.text());
  }
  return data;
}

Outcome run_vocabulary(std::string_view input) {
  ByteSource source(input);
  TokenizerData data = data_from(source);
  const auto tokenizer = Tokenizer::create(std::move(data));
  if (!tokenizer.ok()) {
    return {.message = tokenizer.error().message};
  }
  check_text(**tokenizer, cut_in_pieces(source));
  check_any_ids(**tokenizer, source);
  return {.accepted = true};
}

Outcome run_tokenizer_text(std::string_view input) {
  // Made once and kept.
  static const auto* const vocabularies = [] {
    auto* const all = new std::vector<std::unique_ptr<Tokenizer>>();
    for (const char* pre : {"smollm", "qwen2"}) {
      TokenizerData data = byte_level_data();
      data.pre = pre;
      all->push_back(Tokenizer::create(std::move(data)).value());
    }
    all->push_back(Tokenizer::create(sentencepiece_data()).value());
    TokenizerData spaced = sentencepiece_data();
    spaced.add_space_prefix = true;
    all->push_back(Tokenizer::create(std::move(spaced)).value());
    return all;
  }();
  ByteSource source(input);
  const Tokenizer& tokenizer = *(*vocabularies)[source.byte() % vocabularies->size()];
  check_text(tokenizer, cut_in_pieces(source));
  check_any_ids(tokenizer, source);
  return {.accepted = true};
}

constexpr auto kTextWords = std::to_array<std::string_view>(
    {"hello",        " hello",           "<bos>",
     "<eos>",        "<|im_start|>",     "<|im_end|>",
     "<tool>",       "<0x0A>",           "\n\n",
     "  ",           "\xe2\x96\x81",     "\xc4\xa0",
     "e\xcc\x81",    "\xef\xbf\xbd",     "\xf0\x9f\x99\x82",
     "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2",
     "'s",           "123456",           std::string_view("\0", 1)});

}  // namespace

const Target kVocabularyTarget = {
    "vocabulary", run_vocabulary, kTextWords, 16 << 10, std::size_t{16} << 20};
const Target kTokenizerTextTarget = {
    "tokenizer_text", run_tokenizer_text, kTextWords, 16 << 10, std::size_t{16} << 20};

}  // namespace headrace::fuzz
