#include "base/mapped_file.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

namespace headrace {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }
  void write(std::string_view text) { std::ofstream(path_, std::ios::binary) << text; }
  static std::string_view text_of(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  std::string path_ = testing::TempDir() + "/mapped_file_test_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MappedFileTest, ShowsTheFilesBytes) {
  write("hello");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(*file), "hello");
  EXPECT_EQ(file->path(), path_);
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  write("");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, NamesTheFileThatIsNotThere) {
  const auto file = MappedFile::open(path_);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(file.error().message, path_ + ": No such file or directory");
}

TEST_F(MappedFileTest, RefusesADirectoryAndADevice) {
  EXPECT_EQ(MappedFile::open(testing::TempDir()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open("/dev/null").error().message, "/dev/null: not a regular file");
}

TEST_F(MappedFileTest, MovingKeepsTheMapping) {
  write("moved");
  auto opened = MappedFile::open(path_);
  ASSERT_TRUE(opened.ok());
  const std::byte* data = opened->bytes().data();
  MappedFile first = std::move(*opened);
  EXPECT_EQ(first.bytes().data(), data);
  MappedFile second;
  second = std::move(first);
  EXPECT_EQ(second.bytes().data(), data);
  EXPECT_EQ(text_of(second), "moved");
}

TEST_F(MappedFileTest, OutlivesTheNameOfTheFile) {
  write("still here");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  std::remove(path_.c_str());
  EXPECT_EQ(text_of(*file), "still here");
}

TEST_F(MappedFileTest, DroppedPagesComeBackFromTheFile) {
  const std::string text(100000, 'x');
  write(text);
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  file->drop(file->bytes().subspan(1, 90000));
  file->drop({});
  EXPECT_EQ(text_of(*file), text);
}

}  // namespace
}  // namespace headrace
