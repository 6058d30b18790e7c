#include "app/command.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

// The line on stderr that this command line ends with, and its exit code.
std::pair<std::string, int> end_of(const std::string& words) {
  CLI::App app{"", "headrace"};
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "");
  int tokens = 0;
  std::uint64_t seed = 0;
  std::string model;
  run->add_option("MODEL", model)->required();
  run->add_option("--max-tokens", tokens)->check(at_least(0));
  run->add_option("--seed", seed)->check(whole_number());
  try {
    app.parse(words, false);
  } catch (const CLI::ParseError& error) {
    ::testing::internal::CaptureStderr();
    const int code = end_parsing(app, error);
    return {::testing::internal::GetCapturedStderr(), code};
  }
  return {"", 0};
}

TEST(CommandLine, AWrongOneEndsWithOneLineThatHelps) {
  EXPECT_EQ(end_of("run").first, "headrace: MODEL is required: see headrace run --help\n");
  EXPECT_EQ(end_of("").first, "headrace: A subcommand is required: see headrace --help\n");
  EXPECT_EQ(end_of("frob").first, "headrace: there is no command 'frob': see headrace --help\n");
  EXPECT_EQ(end_of("frob").second, kExitUsage);
}

TEST(CommandLine, NumbersSayTheirRange) {
  EXPECT_EQ(end_of("run m --max-tokens -1").first,
            "headrace: --max-tokens: '-1' is no whole number from 0 to 2147483647: see headrace "
            "run --help\n");
  EXPECT_EQ(end_of("run m --max-tokens 1e3").second, kExitUsage);
  EXPECT_EQ(end_of("run m --max-tokens 99999999999").second, kExitUsage);
  EXPECT_EQ(end_of("run m --max-tokens 7").second, 0);
}

TEST(CommandLine, ASeedBeyond64BitsIsRefused) {
  EXPECT_EQ(end_of("run m --seed 18446744073709551615").second, 0);
  EXPECT_EQ(end_of("run m --seed 18446744073709551616").second, kExitUsage);
}

TEST(CommandLine, AnErrorIsOneLineWhateverItHolds) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(fail(make_error(ErrorCode::kInvalidArgument, "two\nlines\r\n")), kExitUsage);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "headrace: two lines  \n");
}

TEST(CommandLine, AnUnreadableFileIsNamedWithTheReason) {
  EXPECT_EQ(read_file("/").error().message, "/: cannot be read: Is a directory");
  EXPECT_EQ(read_file("/no/such").error().message,
            "/no/such: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace headrace
