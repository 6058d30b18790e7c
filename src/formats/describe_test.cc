#include "formats/describe.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "formats/gguf_test_writer.h"

namespace headrace {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing_gguf::array;
using testing_gguf::File;
using testing_gguf::scalar;
using testing_gguf::text;
using testing_gguf::texts;

std::vector<std::byte> sample() {
  File file;
  file.entries = {text("general.architecture", "llama"),
                  scalar<float>("llama.attention.layer_norm_rms_epsilon", 1e-6F),
                  scalar<std::uint64_t>("big", std::numeric_limits<std::uint64_t>::max()),
                  scalar<float>("nan", std::numeric_limits<float>::quiet_NaN()),
                  text("bad", "a\xFFz\n"),
                  array<std::int32_t>("short", std::vector<std::int32_t>(16, -1)),
                  array<std::int32_t>("long", std::vector<std::int32_t>(17, 5)),
                  text("tokenizer.ggml.model", "llama"),
                  texts("tokenizer.ggml.tokens", {"<s>", "\"a\""}),
                  array<float>("tokenizer.ggml.scores", {0.0F, -1.0F}),
                  array<std::int32_t>("tokenizer.ggml.token_type", {3, 1}),
                  scalar<std::uint32_t>("tokenizer.ggml.bos_token_id", 0)};
  file.tensors = {{"w", {8, 2}, 0, 0}, {"v", {32, 1, 2}, 2, 64}};
  file.data_bytes = 128;
  return file.write();
}

json::object describe(const std::vector<std::byte>& bytes) {
  const auto file = GgufFile::parse(bytes, "m.gguf");
  HR_CHECK(file.ok());
  return json::parse(describe_json(*file)).as_object();
}

TEST(DescribeJson, HoldsHeaderTotalsAndTensors) {
  const std::vector<std::byte> bytes = sample();
  const json::object out = describe(bytes);
  EXPECT_EQ(out.at("file"), "m.gguf");
  EXPECT_EQ(out.at("bytes"), bytes.size());
  EXPECT_EQ(out.at("version"), 3);
  EXPECT_EQ(out.at("architecture"), "llama");
  EXPECT_EQ(out.at("parameters"), 16 + 64);
  EXPECT_EQ(out.at("tensor_bytes"), 64 + 36);
  EXPECT_EQ(json::serialize(out.at("types")),
            R"({"F32":{"tensors":1,"bytes":64},"Q4_0":{"tensors":1,"bytes":36}})");
  EXPECT_EQ(json::serialize(out.at("tensors").at(1)),
            fmt::format(R"({{"name":"v","dtype":"Q4_0","shape":[2,1,32],"bytes":36,"offset":{}}})",
                        bytes.size() - 128 + 64));
}

TEST(DescribeJson, MetadataKeepTheirTypes) {
  const json::object metadata = describe(sample()).at("metadata").as_object();
  EXPECT_EQ(metadata.at("llama.attention.layer_norm_rms_epsilon"), 1e-6);
  EXPECT_EQ(metadata.at("big"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(metadata.at("nan").is_null());
  EXPECT_EQ(metadata.at("bad"), "a\xEF\xBF\xBDz\n");
  EXPECT_EQ(metadata.at("short").as_array().size(), 16U);
  EXPECT_EQ(json::serialize(metadata.at("long")),
            R"({"element_type":"i32","count":17,"first":[5,5,5,5]})");
}

TEST(DescribeJson, TheTokenizerIsSummarized) {
  const json::value tokenizer = describe(sample()).at("tokenizer");
  EXPECT_EQ(
      json::serialize(tokenizer),
      R"({"model":"llama","pre":"","tokens":2,"merges":0,"bos":{"id":0,"text":"<s>"},"eos":null,"eot":null,)"
      R"("unk":null,"pad":null,"add_bos":true,"add_eos":false,"add_space_prefix":true,"chat_template":false})");
}

TEST(DescribeJson, AFileWithoutTokenizerIsDescribedToo) {
  const std::vector<std::byte> bytes = File{}.write();
  const json::object out = describe(bytes);
  EXPECT_TRUE(out.at("tokenizer").is_null());
  EXPECT_TRUE(out.at("architecture").is_null());
  File other;
  other.entries = {text("tokenizer.ggml.model", "t5")};
  EXPECT_THAT(json::serialize(describe(other.write()).at("tokenizer")),
              HasSubstr("tokenizer 't5' is not supported"));
}

TEST(DescribeText, ShowsTheSameOnLines) {
  const std::vector<std::byte> bytes = sample();
  const auto file = GgufFile::parse(bytes, "m.gguf");
  ASSERT_TRUE(file.ok());
  const std::string page = describe_text(*file);
  EXPECT_THAT(page, HasSubstr("m.gguf: GGUF 3, "));
  EXPECT_THAT(page, HasSubstr("general.architecture                        llama\n"));
  EXPECT_THAT(page, HasSubstr("17 i32s\n"));
  EXPECT_THAT(page, HasSubstr("a\\xffz\\x0a\n"));
  EXPECT_THAT(page, HasSubstr("[2, 1, 32]"));
}

}  // namespace
}  // namespace headrace
