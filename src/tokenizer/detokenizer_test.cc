#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"
#include "tokenizer/test_vocabularies.h"

namespace headrace {
namespace {

std::unique_ptr<Tokenizer> make(TokenizerData data) {
  return std::move(*Tokenizer::create(std::move(data)));
}

TEST(Detokenizer, HoldsBackHalfACharacter) {
  const auto t = make(byte_level_data());
  IncrementalDetokenizer stream(*t);
  EXPECT_EQ(stream.push(256), "he");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "😀");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Detokenizer, WhatStaysIncompleteIsAReplacementCharacter) {
  const auto t = make(byte_level_data());
  IncrementalDetokenizer stream(*t);
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push('a'), "\uFFFDa");
  EXPECT_EQ(stream.push(0xFF), "\uFFFD");
}

TEST(Detokenizer, ControlTokensAreLeftOutUnlessAsked) {
  const auto t = make(byte_level_data());
  IncrementalDetokenizer stream(*t);
  EXPECT_EQ(stream.push(267), "");
  IncrementalDetokenizer all(*t, SkipSpecial::kNo);
  EXPECT_EQ(all.push(267), "<|im_end|>");
}

TEST(Detokenizer, TakesAwayOneLeadingSpaceWhereEncodingAddsIt) {
  TokenizerData data = sentencepiece_data();
  data.add_space_prefix = true;
  const auto t = make(std::move(data));
  IncrementalDetokenizer stream(*t);
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(270), "he");
  EXPECT_EQ(stream.push(270), " he");
}

// Half of them from 0x80 to 0xFF: halves of characters, and bytes that belong to none.
std::vector<TokenId> random_ids(std::uint64_t seed) {
  std::vector<TokenId> ids;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const bool any_id = uniform(seed, i, 0) < 0.5F;
    const float id = any_id ? 300 * uniform(seed, i, 1) : 0x80 + 0x80 * uniform(seed, i, 1);
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

void expect_stream_equals_decode(const Tokenizer& tokenizer,
                                 const std::vector<TokenId>& ids,
                                 SkipSpecial skip) {
  IncrementalDetokenizer stream(tokenizer, skip);
  std::string text;
  for (const TokenId id : ids) {
    const std::string step = stream.push(id);
    ASSERT_EQ(find_invalid_utf8(step), std::string::npos);
    text += step;
  }
  ASSERT_EQ(text + stream.flush(), tokenizer.decode(ids, skip)) << testing::PrintToString(ids);
}

TEST(Detokenizer, TheSumOfTheStreamIsTheDecodedText) {
  TokenizerData prefixed = sentencepiece_data();
  prefixed.add_space_prefix = true;
  for (const TokenizerData& data : {byte_level_data(), sentencepiece_data(), prefixed}) {
    const auto t = make(data);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      expect_stream_equals_decode(*t, random_ids(seed), SkipSpecial::kYes);
      expect_stream_equals_decode(*t, random_ids(seed), SkipSpecial::kNo);
    }
  }
}

}  // namespace
}  // namespace headrace
