// Files that lie: each field of a good file is broken in turn, the file is cut anywhere, its bits
// are flipped. Nothing may crash, read outside the file or allocate without bound; what is refused
// is refused in one line that says why.
#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/gguf_test_writer.h"
#include "formats/gguf_tokenizer.h"

namespace headrace {
namespace {

using testing::HasSubstr;
using testing_gguf::array;
using testing_gguf::Bytes;
using testing_gguf::File;
using testing_gguf::scalar;
using testing_gguf::Tensor;
using testing_gguf::text;
using testing_gguf::texts;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

// One F32 tensor 'w' of [2, 8], 64 bytes, and a small tokenizer.
File good_file() {
  File file;
  file.entries = {text("general.architecture", "llama"),
                  scalar<std::uint32_t>("general.alignment", 32),
                  scalar<bool>("tokenizer.ggml.add_bos_token", true),
                  text("tokenizer.ggml.model", "llama"),
                  texts("tokenizer.ggml.tokens", {"<s>", "a", "b"}),
                  array<float>("tokenizer.ggml.scores", {0.0F, -1.0F, -2.0F}),
                  array<std::int32_t>("tokenizer.ggml.token_type", {3, 1, 1}),
                  scalar<std::uint32_t>("tokenizer.ggml.bos_token_id", 0)};
  file.tensors = {{"w", {8, 2}, 0, 0}, {"v", {32, 1, 2}, 2, 64}};
  file.data_bytes = 128;
  return file;
}

// The message of parsing these bytes, "" where the file is taken. The bytes are copied to their
// exact size, so that the address sanitizer sees one byte too far.
std::string parse(const std::vector<std::byte>& bytes, std::size_t size) {
  const auto exact = std::make_unique<std::byte[]>(size);
  std::copy_n(bytes.begin(), size, exact.get());
  const auto file = GgufFile::parse({exact.get(), size}, "m.gguf");
  if (!file.ok()) {
    return file.error().message;
  }
  // What is accepted must be readable from end to end.
  std::size_t sum = 0;
  for (const TensorView& tensor : file->tensors()) {
    for (const std::byte byte : tensor.data) {
      sum += std::to_integer<std::size_t>(byte);
    }
  }
  for (const GgufEntry& entry : file->metadata().entries()) {
    static_cast<void>(file->metadata().strings(entry.key));
    static_cast<void>(file->metadata().floats(entry.key));
    static_cast<void>(file->metadata().ints(entry.key));
    static_cast<void>(file->metadata().u64(entry.key));
    static_cast<void>(file->metadata().i64(entry.key));
  }
  static_cast<void>(read_tokenizer(*file));
  EXPECT_LE(sum, 255 * size);
  return "";
}

std::string parse(File file) {
  const std::vector<std::byte> bytes = file.write();
  return parse(bytes, bytes.size());
}

std::string with_entry(const Bytes& entry) {
  File file = good_file();
  file.entries.push_back(entry);
  return parse(std::move(file));
}

std::string with_tensor(Tensor tensor, std::size_t data_bytes = 4096) {
  File file = good_file();
  file.tensors = {std::move(tensor)};
  file.data_bytes = data_bytes;
  return parse(std::move(file));
}

TEST(GgufHostile, TheGoodFileIsTaken) { EXPECT_EQ(parse(good_file()), ""); }

TEST(GgufHostile, HeaderFieldsAreChecked) {
  EXPECT_EQ(parse({}, 0), "m.gguf: not a GGUF file: it does not start with the letters GGUF");
  File file = good_file();
  file.magic = "GGML";
  EXPECT_EQ(parse(file), "m.gguf: not a GGUF file: it does not start with the letters GGUF");
  file = good_file();
  file.version = 1;
  EXPECT_EQ(parse(file), "m.gguf: GGUF version 1: versions 2 and 3 are read");
  file.version = 4;
  EXPECT_EQ(parse(file), "m.gguf: GGUF version 4: versions 2 and 3 are read");
  file.version = 0;
  EXPECT_EQ(parse(file), "m.gguf: GGUF version 0: versions 2 and 3 are read");
  file.version = 0x03000000;
  EXPECT_EQ(parse(file),
            "m.gguf: a big-endian file: convert it to little-endian (gguf-convert-endian)");
}

TEST(GgufHostile, CountsAreCheckedAgainstTheFile) {
  for (const std::uint64_t count : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, kHuge}) {
    File file = good_file();
    file.num_entries = count;
    EXPECT_THAT(parse(file), HasSubstr("metadata count"));
    file = good_file();
    file.num_tensors = count;
    EXPECT_THAT(parse(file), HasSubstr("tensor count"));
  }
  File file = good_file();
  file.num_entries = 9;  // the first tensor is read as an entry
  EXPECT_NE(parse(file), "");
  file = good_file();
  file.num_tensors = 3;
  EXPECT_NE(parse(file), "");
}

TEST(GgufHostile, KeysAreChecked) {
  EXPECT_EQ(with_entry(scalar<std::uint32_t>("", 1)),
            "m.gguf: metadata 8: a key of 0 bytes; 1 to 65535 are allowed");
  EXPECT_EQ(with_entry(scalar<std::uint32_t>(std::string(65536, 'k'), 1)),
            "m.gguf: metadata 8: a key of 65536 bytes; 1 to 65535 are allowed");
  EXPECT_EQ(with_entry(text("general.architecture", "x")),
            "m.gguf: key 'general.architecture': occurs twice");
  EXPECT_THAT(with_entry(Bytes().put<std::uint64_t>(kHuge)),
              HasSubstr("metadata 8: key: length 18446744073709551615, but only"));
}

TEST(GgufHostile, AMessageIsOneLineWhateverTheName) {
  const std::string message =
      with_entry(scalar<bool>("a\nb\x01\xff", true).append(scalar<bool>("x", true)));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  const std::string twice = parse([] {
    File file = good_file();
    file.entries = {scalar<bool>("a\nb\xff", true), scalar<bool>("a\nb\xff", true)};
    return file;
  }());
  EXPECT_EQ(twice, "m.gguf: key 'a\\x0ab\\xff': occurs twice");
  EXPECT_LT(with_tensor({std::string(255, 'n'), {8}, 99, 0}).size(), 300U);
}

TEST(GgufHostile, ValuesAreChecked) {
  EXPECT_EQ(with_entry(Bytes().put_string("k").put<std::uint32_t>(13)),
            "m.gguf: key 'k': value type 13 is unknown");
  EXPECT_EQ(with_entry(Bytes().put_string("k").put(GgufType::kBool).put<std::uint8_t>(2)),
            "m.gguf: key 'k': a bool of 2; 0 and 1 are allowed");
  EXPECT_THAT(with_entry(Bytes().put_string("k").put(GgufType::kString).put(kHuge)),
              HasSubstr("key 'k': length 18446744073709551615, but only"));
}

TEST(GgufHostile, ArraysAreChecked) {
  const auto array_of = [](std::uint32_t type, std::uint64_t count) {
    return Bytes().put_string("k").put(GgufType::kArray).put(type).put(count);
  };
  EXPECT_EQ(with_entry(array_of(9, 0)), "m.gguf: key 'k': an array of arrays is not read");
  EXPECT_EQ(with_entry(array_of(77, 0)), "m.gguf: key 'k': array element type 77 is unknown");
  for (std::uint32_t type = 0; type < kNumGgufTypes; ++type) {
    if (type == 9) {
      continue;
    }
    for (const std::uint64_t count :
         {kHuge, kHuge / 4 + 1, kHuge / 8 + 1, std::uint64_t{1} << 32}) {
      EXPECT_THAT(with_entry(array_of(type, count)), HasSubstr("key 'k': an array of")) << type;
    }
  }
  EXPECT_EQ(with_entry(array_of(8, 2).put_string("ab").put(kHuge)),
            "m.gguf: key 'k': element 1 of 2 runs past the end of the file");
  EXPECT_EQ(with_entry(array_of(7, 2).put<std::uint8_t>(1).put<std::uint8_t>(7)),
            "m.gguf: key 'k': a bool of 7; 0 and 1 are allowed");
}

TEST(GgufHostile, AlignmentIsChecked) {
  for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 33U, 0x80000000U, 0xFFFFFFFFU}) {
    File file = good_file();
    file.entries[1] = scalar<std::uint32_t>("general.alignment", alignment);
    EXPECT_EQ(
        parse(file),
        fmt::format(
            "m.gguf: key 'general.alignment' is {}: a power of two from 8 to 1048576 is allowed",
            alignment));
  }
  File file = good_file();
  file.entries[1] = scalar<std::uint64_t>("general.alignment", 32);
  EXPECT_EQ(parse(file), "m.gguf: key 'general.alignment' holds u64, not u32");
}

TEST(GgufHostile, ASplitFileIsRefusedWithTheWayOut) {
  EXPECT_EQ(with_entry(scalar<std::uint16_t>("split.count", 3)),
            "m.gguf: one of 3 parts of a split model, which are not read: merge them "
            "(llama-gguf-split --merge)");
  EXPECT_EQ(with_entry(scalar<std::uint16_t>("split.count", 1)), "");
}

TEST(GgufHostile, TensorNamesAreChecked) {
  EXPECT_EQ(with_tensor({"", {8}, 0, 0}),
            "m.gguf: tensor 0: a name of 0 bytes; 1 to 255 are allowed");
  EXPECT_EQ(with_tensor({std::string(256, 'n'), {8}, 0, 0}),
            "m.gguf: tensor 0: a name of 256 bytes; 1 to 255 are allowed");
  File file = good_file();
  file.tensors[1].name = "w";
  EXPECT_EQ(parse(file), "m.gguf: tensor 'w': occurs twice");
}

TEST(GgufHostile, ShapesAreChecked) {
  EXPECT_EQ(with_tensor({"w", {}, 0, 0}), "m.gguf: tensor 'w': 0 dimensions; 1 to 4 are allowed");
  EXPECT_EQ(with_tensor({"w", {2, 2, 2, 2, 2}, 0, 0}),
            "m.gguf: tensor 'w': 5 dimensions; 1 to 4 are allowed");
  EXPECT_EQ(with_tensor({"w", {2}, 0, 0, 0xFFFFFFFFU}),
            "m.gguf: tensor 'w': 4294967295 dimensions; 1 to 4 are allowed");
  EXPECT_EQ(with_tensor({"w", {8, 0}, 0, 0}), "m.gguf: tensor 'w': dimension 1 is 0");
  for (const std::vector<std::uint64_t>& dims : {std::vector<std::uint64_t>{kHuge},
                                                 {std::uint64_t{1} << 63},
                                                 {std::uint64_t{1} << 32, std::uint64_t{1} << 32},
                                                 {std::uint64_t{1} << 16,
                                                  std::uint64_t{1} << 16,
                                                  std::uint64_t{1} << 16,
                                                  std::uint64_t{1} << 16},
                                                 {3, kHuge / 3 + 1}}) {
    EXPECT_THAT(with_tensor({"w", dims, 0, 0}),
                HasSubstr("the number of values does not fit 63 bits"));
  }
  EXPECT_EQ(with_tensor({"w", {std::uint64_t{1} << 62}, 0, 0}),
            "m.gguf: tensor 'w': its size does not fit 63 bits");
  EXPECT_THAT(with_tensor({"w", {std::uint64_t{1} << 60}, 0, 0}), HasSubstr("it is cut short"));
}

TEST(GgufHostile, RowsAreWholeBlocks) {
  EXPECT_EQ(with_tensor({"blk.3.ffn_up.weight", {580, 4}, 12, 0}),
            "m.gguf: tensor 'blk.3.ffn_up.weight': rows of 580 values are no multiple of the Q4_K "
            "block of 256");
  EXPECT_EQ(with_tensor({"w", {31, 32}, 8, 0}),
            "m.gguf: tensor 'w': rows of 31 values are no multiple of the Q8_0 block of 32");
}

TEST(GgufHostile, TypesThatAreNotReadAreNamed) {
  EXPECT_EQ(with_tensor({"w", {256}, 16, 0}),
            "m.gguf: tensor 'w': type IQ2_XXS is not supported yet; supported are F32 F16 BF16 "
            "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 "
            "Q4_K Q5_K Q6_K");
  EXPECT_THAT(with_tensor({"w", {256}, 10, 0}), HasSubstr("type Q2_K is not supported yet"));
  EXPECT_THAT(with_tensor({"w", {256}, 39, 0}), HasSubstr("type MXFP4 is not supported yet"));
  EXPECT_THAT(with_tensor({"w", {256}, 99, 0}), HasSubstr("tensor 'w': type 99 is unknown"));
  for (std::uint32_t type = 0; type < 64; ++type) {
    EXPECT_EQ(with_tensor({"w", {256}, type, 0}).empty(), dtype_from_gguf(type).has_value())
        << type;
  }
}

TEST(GgufHostile, OffsetsAreChecked) {
  EXPECT_EQ(with_tensor({"w", {8}, 0, 33}),
            "m.gguf: tensor 'w': offset 33 is no multiple of the alignment of 32");
  EXPECT_THAT(with_tensor({"w", {8}, 0, kHuge - 31}), HasSubstr("it is cut short"));
  EXPECT_THAT(with_tensor({"w", {8}, 0, std::uint64_t{1} << 63}), HasSubstr("it is cut short"));
  EXPECT_EQ(with_tensor({"w", {8}, 0, 32}, 64), "");
  EXPECT_THAT(with_tensor({"w", {8}, 0, 32}, 63), HasSubstr("tensor 'w': its bytes end at"));
  EXPECT_THAT(with_tensor({"w", {1024}, 0, 0}, 4095), HasSubstr("it is cut short"));
}

TEST(GgufHostile, TensorsDoNotOverlap) {
  File file = good_file();
  file.tensors[1].offset = 32;  // w takes 0..63
  EXPECT_EQ(parse(file), "m.gguf: tensor 'v': its bytes overlap those of tensor 'w'");
  file.tensors[1].offset = 0;
  EXPECT_THAT(parse(file), HasSubstr("overlap"));
}

TEST(GgufHostile, TensorsMayStandInAnyOrder) {
  File file = good_file();
  std::swap(file.tensors[0], file.tensors[1]);
  EXPECT_EQ(parse(file), "");
}

TEST(GgufHostile, ACutAtEverySectionBorderIsRefused) {
  File file = good_file();
  const std::vector<std::byte> bytes = file.write();
  ASSERT_EQ(file.borders.size(), 20U);
  for (const std::size_t border : file.borders) {
    for (const std::size_t size : {border - 1, border, border + 1}) {
      if (size < 100 + bytes.size() - 128 &&
          size < bytes.size()) {  // the last tensor ends 28 bytes before the file
        EXPECT_NE(parse(bytes, size), "") << "cut at " << size << " of " << bytes.size();
      }
    }
  }
}

TEST(GgufHostile, ACutAnywhereIsRefused) {
  File file = good_file();
  const std::vector<std::byte> bytes = file.write();
  const std::size_t needed = bytes.size() - 128 + 100;
  std::mt19937 engine(17);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t size = std::uniform_int_distribution<std::size_t>(0, needed - 1)(engine);
    const std::string message = parse(bytes, size);
    ASSERT_NE(message, "") << "cut at " << size;
    ASSERT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(parse(bytes, needed), "");
}

TEST(GgufHostile, FlippedBitsNeverCrash) {
  File file = good_file();
  const std::vector<std::byte> good = file.write();
  std::mt19937 engine(4);
  int num_refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::vector<std::byte> bytes = good;
    const int num_flips = 1 + static_cast<int>(engine() % 8);
    for (int i = 0; i < num_flips; ++i) {
      bytes[engine() % bytes.size()] ^= static_cast<std::byte>(1U << (engine() % 8));
    }
    const std::string message = parse(bytes, bytes.size());
    num_refused += message.empty() ? 0 : 1;
    ASSERT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_GT(num_refused, 2000);
  EXPECT_LT(num_refused, 6000);
}

TEST(GgufHostile, ExtremeWordsAnywhereNeverCrash) {
  File file = good_file();
  const std::vector<std::byte> good = file.write();
  const std::vector<std::uint64_t> words = {
      0, 1, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, kHuge, kHuge - 7, 1ULL << 32};
  for (std::size_t at = 0; at + 8 <= good.size() - 128; ++at) {
    for (const std::uint64_t word : words) {
      std::vector<std::byte> bytes = good;
      std::memcpy(bytes.data() + at, &word, sizeof(word));
      ASSERT_EQ(parse(bytes, bytes.size()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace headrace
