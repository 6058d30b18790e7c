#include "formats/gguf_tokenizer.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf_test_writer.h"

namespace headrace {
namespace {

using testing_gguf::array;
using testing_gguf::Bytes;
using testing_gguf::File;
using testing_gguf::scalar;
using testing_gguf::text;
using testing_gguf::texts;

Result<TokenizerData> read(std::vector<Bytes> entries) {
  File file;
  file.entries = std::move(entries);
  const std::vector<std::byte> bytes = file.write();
  const auto parsed = GgufFile::parse(bytes, "m.gguf");
  HR_CHECK(parsed.ok());
  return read_tokenizer(*parsed);
}

// SentencePiece: <s>, a, b.
std::vector<Bytes> sentencepiece() {
  return {text("tokenizer.ggml.model", "llama"),
          texts("tokenizer.ggml.tokens", {"<s>", "a", "b"}),
          array<float>("tokenizer.ggml.scores", {0.0F, -1.0F, -2.0F}),
          array<std::int32_t>("tokenizer.ggml.token_type", {3, 1, 6})};
}

// Byte-level BPE: a, b, ab, <|im_end|>, <|endoftext|>.
std::vector<Bytes> byte_level() {
  return {text("tokenizer.ggml.model", "gpt2"),
          text("tokenizer.ggml.pre", "qwen2"),
          texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>", "<|endoftext|>"}),
          array<std::int32_t>("tokenizer.ggml.token_type", {1, 1, 1, 3, 3}),
          texts("tokenizer.ggml.merges", {"a b"})};
}

std::vector<Bytes> with(std::vector<Bytes> entries, Bytes entry) {
  entries.push_back(std::move(entry));
  return entries;
}

std::vector<Bytes> replaced(std::vector<Bytes> entries, std::size_t entry_idx, Bytes entry) {
  entries[entry_idx] = std::move(entry);
  return entries;
}

std::string error_of(std::vector<Bytes> entries) {
  const auto data = read(std::move(entries));
  return data.ok() ? "" : data.error().message;
}

TEST(GgufTokenizer, ReadsSentencePiece) {
  const auto data = read(sentencepiece());
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->model, "llama");
  EXPECT_EQ(data->tokens, (std::vector<std::string>{"<s>", "a", "b"}));
  EXPECT_EQ(data->scores, (std::vector<float>{0.0F, -1.0F, -2.0F}));
  EXPECT_EQ(data->kinds,
            (std::vector<TokenKind>{TokenKind::kControl, TokenKind::kNormal, TokenKind::kByte}));
  EXPECT_TRUE(data->merges.empty());
  EXPECT_TRUE(data->add_bos);
  EXPECT_FALSE(data->add_eos);
  EXPECT_TRUE(data->add_space_prefix);
  EXPECT_EQ(data->bos_id, -1);
  EXPECT_EQ(data->chat_template, "");
}

TEST(GgufTokenizer, ReadsByteLevelBpe) {
  const auto data = read(byte_level());
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->pre, "qwen2");
  EXPECT_EQ(data->merges, (std::vector<std::string>{"a b"}));
  EXPECT_TRUE(data->scores.empty());
  EXPECT_FALSE(data->add_bos);
  EXPECT_FALSE(data->add_eos);
  EXPECT_FALSE(data->add_space_prefix);
}

TEST(GgufTokenizer, Llama3sPreTokenizerAddsBos) {
  EXPECT_TRUE(read(replaced(byte_level(), 1, text("tokenizer.ggml.pre", "llama-bpe")))->add_bos);
}

TEST(GgufTokenizer, TheFilesSwitchesStandAboveTheDefaults) {
  auto entries = sentencepiece();
  entries.push_back(scalar<bool>("tokenizer.ggml.add_bos_token", false));
  entries.push_back(scalar<bool>("tokenizer.ggml.add_eos_token", true));
  entries.push_back(scalar<bool>("tokenizer.ggml.add_space_prefix", false));
  entries.push_back(text("tokenizer.chat_template", "{{ x }}"));
  const auto data = read(std::move(entries));
  ASSERT_TRUE(data.ok());
  EXPECT_FALSE(data->add_bos);
  EXPECT_TRUE(data->add_eos);
  EXPECT_FALSE(data->add_space_prefix);
  EXPECT_EQ(data->chat_template, "{{ x }}");
}

TEST(GgufTokenizer, SpecialIdsLieInTheVocabulary) {
  const char* key = "tokenizer.ggml.bos_token_id";
  EXPECT_EQ(read(with(sentencepiece(), scalar<std::uint32_t>(key, 2)))->bos_id, 2);
  EXPECT_EQ(
      error_of(with(sentencepiece(), scalar<std::uint32_t>(key, 3))),
      "m.gguf: key 'tokenizer.ggml.bos_token_id': id 3 is outside the vocabulary of 3 tokens");
  EXPECT_EQ(
      error_of(with(sentencepiece(), scalar<std::int32_t>(key, -2))),
      "m.gguf: key 'tokenizer.ggml.bos_token_id': id -2 is outside the vocabulary of 3 tokens");
  EXPECT_EQ(error_of(with(sentencepiece(), text(key, "2"))),
            "m.gguf: key 'tokenizer.ggml.bos_token_id' holds string, not an integer");
  for (const char* name : {"eos", "eot", "unknown", "padding"}) {
    EXPECT_NE(error_of(with(sentencepiece(),
                            scalar<std::uint32_t>(fmt::format("tokenizer.ggml.{}_token_id", name),
                                                  1U << 31))),
              "")
        << name;
  }
}

TEST(GgufTokenizer, MinusOneOfEitherSignIsNoId) {
  const char* key = "tokenizer.ggml.unknown_token_id";
  EXPECT_EQ(read(with(sentencepiece(), scalar<std::int32_t>(key, -1)))->unk_id, -1);
  EXPECT_EQ(read(with(sentencepiece(), scalar<std::uint32_t>(key, 0xFFFFFFFFU)))->unk_id, -1);
}

TEST(GgufTokenizer, EndOfTurnIsFoundByItsText) {
  const auto data =
      read(with(byte_level(), scalar<std::uint32_t>("tokenizer.ggml.eos_token_id", 4)));
  EXPECT_EQ(data->eot_id, 3);  // <|im_end|>
  const auto other =
      read(with(byte_level(), scalar<std::uint32_t>("tokenizer.ggml.eos_token_id", 3)));
  EXPECT_EQ(other->eot_id, 4);  // not EOS again
  auto typed =
      replaced(byte_level(), 3, array<std::int32_t>("tokenizer.ggml.token_type", {1, 1, 1, 1, 1}));
  EXPECT_EQ(read(std::move(typed))->eot_id, -1);  // a normal token of that text is text
  const auto named =
      read(with(byte_level(), scalar<std::uint32_t>("tokenizer.ggml.eot_token_id", 2)));
  EXPECT_EQ(named->eot_id, 2);
}

TEST(GgufTokenizer, LengthsAgree) {
  EXPECT_EQ(error_of(replaced(sentencepiece(), 2, array<float>("tokenizer.ggml.scores", {0.0F}))),
            "m.gguf: key 'tokenizer.ggml.scores': 1 elements for 3 tokens");
  EXPECT_EQ(
      error_of(replaced(
          sentencepiece(), 3, array<std::int32_t>("tokenizer.ggml.token_type", {1, 1, 1, 1}))),
      "m.gguf: key 'tokenizer.ggml.token_type': 4 elements for 3 tokens");
  EXPECT_EQ(error_of(replaced(sentencepiece(), 1, texts("tokenizer.ggml.tokens", {}))),
            "m.gguf: key 'tokenizer.ggml.tokens': 0 tokens; at least 1 is needed");
}

TEST(GgufTokenizer, WhatAModelNeedsIsThere) {
  EXPECT_EQ(error_of({}), "m.gguf: key 'tokenizer.ggml.model' is missing");
  EXPECT_EQ(error_of({text("tokenizer.ggml.model", "gpt2")}),
            "m.gguf: key 'tokenizer.ggml.tokens' is missing");
  EXPECT_EQ(error_of({text("tokenizer.ggml.model", "gpt2"), texts("tokenizer.ggml.tokens", {"a"})}),
            "m.gguf: key 'tokenizer.ggml.merges' is missing");
  EXPECT_EQ(
      error_of({text("tokenizer.ggml.model", "llama"), texts("tokenizer.ggml.tokens", {"a"})}),
      "m.gguf: key 'tokenizer.ggml.scores' is missing");
  EXPECT_EQ(
      error_of({text("tokenizer.ggml.model", "t5")}),
      "m.gguf: tokenizer 't5' is not supported yet; supported are gpt2 (byte-level BPE) and llama "
      "(SentencePiece BPE)");
}

TEST(GgufTokenizer, ElementsAreChecked) {
  EXPECT_EQ(error_of(replaced(
                sentencepiece(), 3, array<std::int32_t>("tokenizer.ggml.token_type", {3, 1, 7}))),
            "m.gguf: key 'tokenizer.ggml.token_type': token 2 has type 7; 0 to 6 are known");
  EXPECT_EQ(error_of(replaced(sentencepiece(),
                              2,
                              array<float>("tokenizer.ggml.scores",
                                           {0.0F, std::numeric_limits<float>::quiet_NaN(), 0.0F}))),
            "m.gguf: key 'tokenizer.ggml.scores': token 1 has no number as its score");
  for (const char* merge : {"", "a", "ab", "a ", " b"}) {
    EXPECT_EQ(error_of(replaced(byte_level(), 4, texts("tokenizer.ggml.merges", {"a b", merge}))),
              fmt::format("m.gguf: key 'tokenizer.ggml.merges': merge 1 is '{}', not two parts "
                          "with a space between them",
                          merge));
  }
  EXPECT_EQ(error_of(replaced(sentencepiece(), 1, array<float>("tokenizer.ggml.tokens", {1.0F}))),
            "m.gguf: key 'tokenizer.ggml.tokens' holds array of f32, not an array of strings");
}

}  // namespace
}  // namespace headrace
