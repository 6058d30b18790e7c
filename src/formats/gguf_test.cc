#include "formats/gguf.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf_test_writer.h"

namespace headrace {
namespace {

using testing_gguf::array;
using testing_gguf::File;
using testing_gguf::scalar;
using testing_gguf::text;
using testing_gguf::texts;

// Two tensors: F32 [3, 4] at 0 (48 bytes), Q8_0 [2, 32] at 64 (68 bytes).
File small_file() {
  File file;
  file.entries = {text("general.architecture", "llama"),
                  scalar<std::uint32_t>("llama.block_count", 30),
                  texts("tokenizer.ggml.tokens", {"a", "", "ccc"})};
  file.tensors = {{"a", {4, 3}, 0, 0}, {"b", {32, 2}, 8, 64}};
  file.data_bytes = 132;
  return file;
}

TEST(GgufFile, GivesTensorsOutermostDimensionFirst) {
  const std::vector<std::byte> bytes = small_file().write();
  const auto file = GgufFile::parse(bytes, "m.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 2U);
  const TensorView& a = file->tensors()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(a.data.size(), 48U);
  EXPECT_EQ(a.data.data(), bytes.data() + file->data_offset());
  const TensorView* b = file->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, DType::kQ8_0);
  EXPECT_EQ(b->num_rows(), 2);
  EXPECT_EQ(b->num_cols(), 32);
  EXPECT_EQ(b->data.size(), 68U);
  EXPECT_EQ(b->data[0], std::byte{64});
  EXPECT_EQ(file->find("c"), nullptr);
}

TEST(GgufFile, NamesAMissingTensor) {
  const std::vector<std::byte> bytes = small_file().write();
  const auto file = GgufFile::parse(bytes, "m.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tensor("output.weight").error().message,
            "m.gguf: tensor 'output.weight' is missing");
  EXPECT_TRUE(file->tensor("a").ok());
}

TEST(GgufFile, ReadsVersion2) {
  File small = small_file();
  small.version = 2;
  const std::vector<std::byte> bytes = small.write();
  const auto file = GgufFile::parse(bytes, "m.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->version(), 2U);
}

TEST(GgufFile, HoldsToTheFilesAlignment) {
  File small = small_file();
  small.entries.push_back(scalar<std::uint32_t>("general.alignment", 64));
  small.alignment = 64;
  std::vector<std::byte> bytes = small.write();
  const auto file = GgufFile::parse(bytes, "m.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->alignment(), 64U);
  EXPECT_EQ(file->data_offset() % 64, 0U);

  small.tensors[1].offset = 96;  // a multiple of 32 only
  bytes = small.write();
  EXPECT_EQ(GgufFile::parse(bytes, "m.gguf").error().message,
            "m.gguf: tensor 'b': offset 96 is no multiple of the alignment of 64");
}

TEST(GgufFile, MayHoldNoTensors) {
  File vocabulary;
  vocabulary.entries = {text("general.architecture", "llama")};
  const std::vector<std::byte> bytes = vocabulary.write();
  const auto file = GgufFile::parse(bytes, "v.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->tensors().empty());
}

TEST(GgufFile, OpensFromDiskAndKeepsItsBytesWhenMoved) {
  const std::string path = testing::TempDir() + "/gguf_test_small.gguf";
  const std::vector<std::byte> bytes = small_file().write();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  auto opened = GgufFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const GgufFile moved = std::move(*opened);
  EXPECT_EQ(moved.name(), path);
  EXPECT_EQ(moved.find("b")->data[67], std::byte{131});
  EXPECT_EQ(*moved.metadata().u64("llama.block_count"), 30U);
  std::remove(path.c_str());
  EXPECT_EQ(GgufFile::open(path).error().code, ErrorCode::kNotFound);
}

// ---- metadata

class Metadata : public testing::Test {
 protected:
  Metadata() {
    File file;
    file.entries = {scalar<std::uint8_t>("u8", 200),
                    scalar<std::int8_t>("i8", -5),
                    scalar<std::uint16_t>("u16", 65535),
                    scalar<std::int16_t>("i16", -300),
                    scalar<std::uint32_t>("u32", 4000000000U),
                    scalar<std::int32_t>("i32", -7),
                    scalar<std::uint64_t>("u64", 0xFFFFFFFFFFFFFFFFU),
                    scalar<std::int64_t>("i64", 1LL << 40),
                    scalar<float>("f32", 1.5F),
                    scalar<double>("f64", 0.25),
                    scalar<bool>("yes", true),
                    text("text", "hello"),
                    text("empty", ""),
                    texts("words", {"ab", "", "c"}),
                    array<float>("floats", {1.0F, -2.5F}),
                    array<std::int16_t>("shorts", {-1, 2}),
                    array<std::uint64_t>("wide", {1, 0x8000000000000000U}),
                    array<std::uint8_t>("none", {})};
    file.entries.push_back(testing_gguf::Bytes()
                               .put_string("bools")
                               .put(GgufType::kArray)
                               .put(GgufType::kBool)
                               .put<std::uint64_t>(2)
                               .put(true)
                               .put(false));
    bytes_ = file.write();
    auto parsed = GgufFile::parse(bytes_, "m.gguf");
    HR_CHECK(parsed.ok());
    meta_ = parsed->metadata();
  }

  std::vector<std::byte> bytes_;
  GgufMetadata meta_;
};

TEST_F(Metadata, IntegersOfAnyWidthAreRead) {
  EXPECT_EQ(*meta_.u64("u8"), 200U);
  EXPECT_EQ(*meta_.u64("u16"), 65535U);
  EXPECT_EQ(*meta_.u64("u32"), 4000000000U);
  EXPECT_EQ(*meta_.u64("u64"), 0xFFFFFFFFFFFFFFFFU);
  EXPECT_EQ(*meta_.u64("i64"), 1ULL << 40);
  EXPECT_EQ(*meta_.i64("i8"), -5);
  EXPECT_EQ(*meta_.i64("i16"), -300);
  EXPECT_EQ(*meta_.i64("i32"), -7);
  EXPECT_EQ(*meta_.i64("u32"), 4000000000);
}

TEST_F(Metadata, OtherValuesAreRead) {
  EXPECT_EQ(*meta_.f32("f32"), 1.5F);
  EXPECT_EQ(*meta_.f32("f64"), 0.25F);
  EXPECT_TRUE(*meta_.boolean("yes"));
  EXPECT_EQ(*meta_.string("text"), "hello");
  EXPECT_EQ(*meta_.string("empty"), "");
  EXPECT_EQ(*meta_.strings("words"), (std::vector<std::string_view>{"ab", "", "c"}));
  EXPECT_EQ(*meta_.floats("floats"), (std::vector<float>{1.0F, -2.5F}));
  EXPECT_EQ(*meta_.ints("shorts"), (std::vector<std::int64_t>{-1, 2}));
  EXPECT_TRUE(meta_.ints("none")->empty());
  EXPECT_EQ(*meta_.bools("bools"), (std::vector<bool>{true, false}));
}

TEST_F(Metadata, ErrorsNameFileAndKey) {
  EXPECT_EQ(meta_.u64("gone").error().message, "m.gguf: key 'gone' is missing");
  EXPECT_EQ(meta_.u64("text").error().message, "m.gguf: key 'text' holds string, not an integer");
  EXPECT_EQ(meta_.u64("i32").error().message, "m.gguf: key 'i32' is -7, but may not be negative");
  EXPECT_EQ(meta_.i64("u64").error().message,
            "m.gguf: key 'u64' is 18446744073709551615, above the largest signed integer");
  EXPECT_EQ(meta_.f32("u32").error().message, "m.gguf: key 'u32' holds u32, not a float");
  EXPECT_EQ(meta_.boolean("u8").error().message, "m.gguf: key 'u8' holds u8, not a bool");
  EXPECT_EQ(meta_.string("words").error().message,
            "m.gguf: key 'words' holds array of string, not a string");
  EXPECT_EQ(meta_.strings("floats").error().message,
            "m.gguf: key 'floats' holds array of f32, not an array of strings");
  EXPECT_FALSE(meta_.floats("shorts").ok());
  EXPECT_FALSE(meta_.ints("floats").ok());
  EXPECT_FALSE(meta_.ints("u8").ok());
  EXPECT_FALSE(meta_.bools("shorts").ok());
  EXPECT_EQ(meta_.ints("wide").error().message,
            "m.gguf: key 'wide': element 1 is above the largest signed integer");
}

TEST_F(Metadata, ADefaultStandsForAMissingKeyOnly) {
  EXPECT_EQ(*meta_.u64_or("gone", 9), 9U);
  EXPECT_EQ(*meta_.u64_or("u8", 9), 200U);
  EXPECT_FALSE(meta_.u64_or("text", 9).ok());
  EXPECT_EQ(*meta_.i64_or("gone", -1), -1);
  EXPECT_EQ(*meta_.f32_or("gone", 0.5F), 0.5F);
  EXPECT_FALSE(meta_.f32_or("yes", 0.5F).ok());
  EXPECT_TRUE(*meta_.boolean_or("gone", true));
  EXPECT_EQ(*meta_.string_or("gone", "x"), "x");
}

TEST_F(Metadata, EntriesKeepTheFilesOrder) {
  ASSERT_EQ(meta_.entries().size(), 19U);
  EXPECT_EQ(meta_.entries()[0].key, "u8");
  EXPECT_EQ(meta_.entries()[13].key, "words");
  EXPECT_EQ(meta_.entries()[13].value.count, 3U);
  EXPECT_EQ(meta_.entries()[13].value.type_name(), "array of string");
}

}  // namespace
}  // namespace headrace
