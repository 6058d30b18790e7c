#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tokenizer/test_vocabularies.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> make(TokenizerData data) {
  auto tokenizer = Tokenizer::create(std::move(data));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

std::string error_of(TokenizerData data) {
  auto tokenizer = Tokenizer::create(std::move(data));
  return tokenizer.ok() ? "no error" : tokenizer.error().message;
}

Ids parse(const Tokenizer& t, std::string_view text) {
  return t.encode(text, SpecialTokens::kParse, AddBos::kNo);
}
Ids plain(const Tokenizer& t, std::string_view text) {
  return t.encode(text, SpecialTokens::kText, AddBos::kNo);
}

TEST(ByteLevel, MergesByRankWithinWords) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(plain(*t, "hello world"), ElementsAre(259, 261, 'r', 'l', 'd'));
  EXPECT_THAT(plain(*t, "hell"), ElementsAre(258));
  EXPECT_THAT(plain(*t, "hhe"), ElementsAre('h', 256));
  EXPECT_THAT(plain(*t, "lll"), ElementsAre(257, 'l'));
  EXPECT_THAT(plain(*t, ""), IsEmpty());
}

TEST(ByteLevel, EachDigitIsAWord) {
  const auto t = make(byte_level_data());  // has the merge "1 2"
  EXPECT_THAT(plain(*t, "12"), ElementsAre('1', '2'));
  EXPECT_THAT(plain(*t, "  1"),
              ElementsAre(263, '1'));  // a digit ends a run of spaces as the text's end does
  EXPECT_THAT(plain(*t, "  x"), ElementsAre(' ', ' ', 'x'));
}

TEST(ByteLevel, LongWordsMergeAsShortOnes) {
  const auto t = make(byte_level_data());
  std::string text;
  Ids expected;
  for (int i = 0; i < 1000; ++i) {
    text += "hello";
    expected.push_back(259);
  }
  EXPECT_EQ(plain(*t, text), expected);
  EXPECT_EQ(plain(*t, std::string(2001, 'l')).size(), 1001U);
}

TEST(ByteLevel, OtherScriptsAreBytes) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(plain(*t, "é"), ElementsAre(0xC3, 0xA9));
}

TEST(ByteLevel, ACharacterWithoutATokenIsDropped) {
  TokenizerData data = byte_level_data();
  data.tokens['z'] = "other";
  const auto t = make(std::move(data));
  EXPECT_THAT(plain(*t, "hze"),
              ElementsAre(256));  // its neighbours then meet, as in the reference
}

TEST(ByteLevel, InvalidBytesAreReplacementCharacters) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(plain(*t, "a\xFF"), ElementsAre('a', 0xEF, 0xBF, 0xBD));
  EXPECT_THAT(plain(*t, "\xE2\x82"), ElementsAre(0xEF, 0xBF, 0xBD));
}

TEST(ByteLevel, Qwen2ComposesCharacters) {
  TokenizerData data = byte_level_data();
  data.pre = "qwen2";
  const auto t = make(std::move(data));
  EXPECT_EQ(plain(*t, "e\xCC\x81"), plain(*t, "é"));
  EXPECT_EQ(plain(*t, "\xE1\x84\x80\xE1\x85\xA1"), plain(*t, "가"));
}

TEST(SpecialTokens, TypedIntoAMessageTheyAreText) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(parse(*t, "<|im_start|>he"), ElementsAre(266, 256));
  EXPECT_THAT(plain(*t, "<|im_start|>"),
              ElementsAre('<', '|', 'i', 'm', '_', 's', 't', 'a', 'r', 't', '|', '>'));
  const std::vector<TextPiece> chat = {
      {"<|im_start|>", true}, {"a<|im_end|>", false}, {"<|im_end|>", true}};
  EXPECT_THAT(t->encode(chat, AddBos::kNo),
              ElementsAre(266, 'a', '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>', 267));
}

TEST(SpecialTokens, NeverGrowAcrossABorderOfTrust) {
  const auto t = make(byte_level_data());
  const std::vector<TextPiece> pieces = {{"<|im_", true}, {"end|>", false}};
  EXPECT_EQ(t->encode(pieces, AddBos::kNo), plain(*t, "<|im_end|>"));
}

TEST(SpecialTokens, GrowAcrossPiecesOfTheTemplate) {
  const auto t = make(byte_level_data());
  const std::vector<TextPiece> pieces = {{"<|im_", true}, {"", false}, {"end|>", true}};
  EXPECT_THAT(t->encode(pieces, AddBos::kNo), ElementsAre(267));
}

TEST(SpecialTokens, TextMergesAcrossABorderOfTrust) {
  const auto t = make(byte_level_data());
  const std::vector<TextPiece> pieces = {{"he", true}, {"ll", false}, {"o", true}};
  EXPECT_THAT(t->encode(pieces, AddBos::kNo), ElementsAre(259));
}

TEST(SpecialTokens, UserDefinedOnesMatchInAnyText) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(plain(*t, "he<tool>he"), ElementsAre(256, 268, 256));
}

TEST(SpecialTokens, UnusedOnesNeverMatch) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(parse(*t, "[PAD]"), ElementsAre('[', 'P', 'A', 'D', ']'));
}

TEST(SpecialTokens, TheLongestWins) {
  TokenizerData data = byte_level_data();
  data.tokens.emplace_back("<|im_end|>\n");
  data.kinds.push_back(TokenKind::kControl);
  const auto t = make(std::move(data));
  EXPECT_THAT(parse(*t, "<|im_end|>\n<|im_end|>"), ElementsAre(270, 267));
}

TEST(Bos, IsAddedOnce) {
  const auto t = make(byte_level_data());
  EXPECT_THAT(t->encode("he", SpecialTokens::kText, AddBos::kYes), ElementsAre(264, 256));
  EXPECT_THAT(t->encode("<bos>he", SpecialTokens::kParse, AddBos::kYes), ElementsAre(264, 256));
  EXPECT_THAT(t->encode("", SpecialTokens::kText, AddBos::kYes), ElementsAre(264));
  EXPECT_EQ(t->encode("<bos>", SpecialTokens::kText, AddBos::kYes)[0], 264);
  EXPECT_EQ(t->encode("<bos>", SpecialTokens::kText, AddBos::kYes)[1], '<');
}

TEST(Bos, FollowsTheFileWhereAskedTo) {
  EXPECT_THAT(make(byte_level_data())->encode("he", SpecialTokens::kText, AddBos::kAsModelSays),
              ElementsAre(256));
  EXPECT_THAT(make(sentencepiece_data())->encode("he", SpecialTokens::kText, AddBos::kAsModelSays),
              ElementsAre(1, 268));
}

TEST(Bos, IsNotAddedWhereThereIsNone) {
  TokenizerData data = byte_level_data();
  data.bos_id = -1;
  EXPECT_THAT(make(std::move(data))->encode("he", SpecialTokens::kText, AddBos::kYes),
              ElementsAre(256));
}

TEST(SentencePiece, MergesByScore) {
  const auto t = make(sentencepiece_data());
  EXPECT_THAT(plain(*t, "hello"), ElementsAre(269, 266));
  EXPECT_THAT(plain(*t, " he"), ElementsAre(270));
  // "ll" and "he" score above "▁he", and "hell" above it too: "▁hello" is out of reach of "▁" +
  // "hell" + "o".
  EXPECT_THAT(plain(*t, " hello"), ElementsAre(262, 269, 266));
}

TEST(SentencePiece, UnknownCharactersFallBackToBytes) {
  const auto t = make(sentencepiece_data());
  EXPECT_THAT(plain(*t, "é"), ElementsAre(272));
  EXPECT_THAT(plain(*t, "ü"), ElementsAre(6 + 0xC3, 6 + 0xBC));
  EXPECT_THAT(plain(*t, "<0x41>").size(), 6U);  // a byte token's name is text
}

TEST(SentencePiece, UserDefinedRunsComeFirst) {
  const auto t = make(sentencepiece_data());
  EXPECT_THAT(plain(*t, "   he"), ElementsAre(5, 270));
  EXPECT_THAT(plain(*t, "\n\n\n"), ElementsAre(4, 6 + '\n'));
}

TEST(SentencePiece, ASpaceInFrontIsAddedAndTakenAway) {
  TokenizerData data = sentencepiece_data();
  data.add_space_prefix = true;
  const auto t = make(std::move(data));
  EXPECT_THAT(plain(*t, "he"), ElementsAre(270));
  EXPECT_EQ(t->decode(Ids{270, 270}, SkipSpecial::kYes), "he he");
  EXPECT_EQ(t->decode(Ids{1, 270}, SkipSpecial::kYes), "he");
  EXPECT_THAT(plain(*t, ""), IsEmpty());
}

TEST(SentencePiece, TextIsNotCutInsideAPieceWithAnInnerSpace) {
  TokenizerData data = sentencepiece_data();
  data.tokens.emplace_back("o▁h");
  data.scores.push_back(-0.5F);
  data.kinds.push_back(TokenKind::kNormal);
  data.tokens.emplace_back("o▁");
  data.scores.push_back(-0.6F);
  data.kinds.push_back(TokenKind::kNormal);
  EXPECT_THAT(plain(*make(std::move(data)), "o h"), ElementsAre(273));
}

std::size_t least(const Tokenizer& t, std::string_view text) {
  const TextPiece piece{text, true};
  return t.least_tokens({&piece, 1});
}

TEST(LeastTokens, AreBytesOverTheLongestToken) {
  const auto bytes = make(byte_level_data());  // <|im_start|>: 12
  EXPECT_EQ(least(*bytes, ""), 0U);
  EXPECT_EQ(least(*bytes, std::string(120, 'x')), 10U);
  EXPECT_EQ(least(*bytes, std::string(121, 'x')), 11U);
  EXPECT_EQ(least(*bytes, "<|im_start|>"), 1U);
  EXPECT_EQ(least(*bytes, std::string(120, '\xFF')), 0U);  // nothing is known
  const std::vector<TextPiece> pieces = {{"0123456789", true}, {"0123456789", false}};
  EXPECT_EQ(bytes->least_tokens(pieces), 2U);
  const auto spaces = make(sentencepiece_data());  // <end_of_turn>: 13
  EXPECT_EQ(least(*spaces, std::string(13, ' ')), 3U);
  EXPECT_EQ(least(*spaces, std::string(14, ' ')), 4U);
}

TEST(LeastTokens, DoNotCountWhatIsDroppedOrComposed) {
  TokenizerData lacking = byte_level_data();
  lacking.tokens['z'] = "other";
  EXPECT_EQ(least(*make(lacking), std::string(1200, 'z') + "x"), 1U);
  lacking.pre = "qwen2";
  EXPECT_EQ(least(*make(lacking), std::string(1200, 'z')), 0U);
  TokenizerData data = byte_level_data();
  data.pre = "qwen2";
  data.tokens.emplace_back(to_byte_alphabet("\xCE\x90"));
  data.kinds.push_back(TokenKind::kNormal);
  data.merges.push_back(to_byte_alphabet("\xCE") + " " + to_byte_alphabet("\x90"));
  const auto t = make(std::move(data));
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "\xE1\xBE\xBE\xCC\x88\xCC\x81";  // seven bytes of two
  }
  EXPECT_EQ(plain(*t, text).size(), 60U);
  EXPECT_EQ(least(*t, text), 9U);
}

TEST(Decode, GivesBackWhatWasEncoded) {
  const auto bytes = make(byte_level_data());
  const auto pieces = make(sentencepiece_data());
  for (const char* text : {"hello  world",
                           " he\n\n\n",
                           "naïve 12 ½ 汉字 👩‍👧",
                           "<|im_start|><tool>",
                           "\t\r\n "}) {
    EXPECT_EQ(bytes->decode(plain(*bytes, text), SkipSpecial::kYes), text);
    EXPECT_EQ(bytes->decode(parse(*bytes, text), SkipSpecial::kNo), text);
    EXPECT_EQ(pieces->decode(plain(*pieces, text), SkipSpecial::kYes), text);
  }
}

TEST(Decode, LeavesOutControlTokensWhereAsked) {
  const auto t = make(byte_level_data());
  EXPECT_EQ(t->decode(Ids{266, 256, 268, 267}, SkipSpecial::kYes), "he<tool>");
  EXPECT_EQ(t->decode(Ids{266, 256, 267}, SkipSpecial::kNo), "<|im_start|>he<|im_end|>");
}

TEST(Decode, IdsOutOfRangeStandForNothing) {
  const auto t = make(byte_level_data());
  EXPECT_EQ(t->decode(Ids{-1, 256, 270, 2147483647}, SkipSpecial::kNo), "he");
  EXPECT_EQ(t->piece(-1), "");
  EXPECT_EQ(t->kind(270), TokenKind::kUnused);
  EXPECT_FALSE(t->is_end_of_generation(270));
}

TEST(Decode, BytesOfATokenAreRaw) {
  EXPECT_EQ(make(byte_level_data())->token_bytes(0xC3), "\xC3");
  EXPECT_EQ(make(byte_level_data())->token_bytes(261), " wo");
  EXPECT_EQ(make(sentencepiece_data())->token_bytes(6 + 0xC3), "\xC3");
  EXPECT_EQ(make(sentencepiece_data())->token_bytes(270), " he");
}

TEST(Threads, MayEncodeAtOnce) {
  const auto t = make(byte_level_data());
  const std::string text = "hello world, <tool> 12 naïve ";
  const Ids expected = plain(*t, text);
  std::vector<int> num_equal(4, 0);
  std::vector<std::thread> threads;
  for (int& count : num_equal) {
    threads.emplace_back([&t, &text, &expected, &count] {
      for (int i = 0; i < 200; ++i) {
        count += plain(*t, text) == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(num_equal, ElementsAre(200, 200, 200, 200));
}

TEST(Ends, AreTheFilesOwnAndTheFamilysNames) {
  const auto t = make(byte_level_data());
  EXPECT_TRUE(t->is_end_of_generation(265));   // eos
  EXPECT_TRUE(t->is_end_of_generation(267));   // <|im_end|>
  EXPECT_FALSE(t->is_end_of_generation(266));  // <|im_start|>
  EXPECT_TRUE(make(sentencepiece_data())->is_end_of_generation(3));
  TokenizerData data = byte_level_data();
  data.kinds[267] = TokenKind::kNormal;  // a name alone does not make it an end
  data.eot_id = 256;
  const auto other = make(std::move(data));
  EXPECT_FALSE(other->is_end_of_generation(267));
  EXPECT_TRUE(other->is_end_of_generation(256));
}

TEST(Data, OfEqualTokensTheFirstCounts) {
  TokenizerData data = byte_level_data();
  data.tokens.emplace_back("hello");
  data.kinds.push_back(TokenKind::kNormal);
  EXPECT_THAT(plain(*make(std::move(data)), "hello"), ElementsAre(259));
}

TEST(Data, ThatIsNotKnownIsRefusedByName) {
  TokenizerData data = byte_level_data();
  data.pre = "foo";
  EXPECT_EQ(error_of(data), "tokenizer: pre-tokenizer 'foo' is not known; known are smollm, qwen2");
  data.model = "bert";
  EXPECT_THAT(error_of(data), HasSubstr("model 'bert' is not known"));
}

TEST(Data, ThatContradictsItselfIsRefused) {
  EXPECT_EQ(error_of({}), "tokenizer: the vocabulary is empty");
  TokenizerData data = byte_level_data();
  data.kinds.pop_back();
  EXPECT_EQ(error_of(data), "tokenizer: 269 token types for 270 tokens");
  data = byte_level_data();
  data.scores = {1, 2};
  EXPECT_EQ(error_of(data), "tokenizer: 2 scores for 270 tokens");
  data = byte_level_data();
  data.kinds[7] = static_cast<TokenKind>(9);
  EXPECT_EQ(error_of(data), "tokenizer: token 7 has the unknown type 9");
  data = byte_level_data();
  data.eos_id = 270;
  EXPECT_EQ(error_of(data), "tokenizer: the eos token 270 is not in the vocabulary of 270");
  data = byte_level_data();
  data.bos_id = -2;
  EXPECT_EQ(error_of(data), "tokenizer: the bos token -2 is not in the vocabulary of 270");
  data = byte_level_data();
  data.tokens.back() = std::string(513, 'x');
  data.kinds.back() = TokenKind::kControl;
  EXPECT_EQ(error_of(data), "tokenizer: special token 269 has 513 bytes; 512 is the limit");
}

TEST(Data, MergesOfWhatIsNoTokenAreRefused) {
  TokenizerData data = byte_level_data();
  data.merges.emplace_back("he lp");
  EXPECT_EQ(error_of(data), "tokenizer: merge 8 ('he lp') needs 'lp', which is no token");
  data.merges.back() = "he he";
  EXPECT_EQ(error_of(data), "tokenizer: merge 8 ('he he') needs 'hehe', which is no token");
  for (const char* merge : {"", " ", "he", "he ", " he", "he ll o"}) {
    data.merges.back() = merge;
    EXPECT_THAT(error_of(data), HasSubstr("merge 8 is not two tokens with a space between"));
  }
}

TEST(Data, SentencePieceNeedsScoresAndAllBytes) {
  TokenizerData data = sentencepiece_data();
  data.tokens[6 + 0x41] = "<0x42>";
  EXPECT_EQ(error_of(data), "tokenizer: the byte token <0x41> is missing");
  data.tokens[6 + 0x41] = "<0xZZ>";
  EXPECT_EQ(error_of(data), "tokenizer: byte token 71 reads '<0xZZ>', not <0x00> to <0xFF>");
  data = sentencepiece_data();
  data.scores[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of(data), "tokenizer: the score of token 3 is not a number");
  data = sentencepiece_data();
  data.scores.clear();
  EXPECT_EQ(error_of(data),
            "tokenizer: model 'llama' needs a score for each token; the file has none");
}

}  // namespace
}  // namespace headrace
