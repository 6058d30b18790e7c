#include "engine/internal/stop_matcher.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace headrace {
namespace {

struct Result {
  std::string text;
  std::string stop;
  friend bool operator==(const Result&, const Result&) = default;
};

// The whole of what comes out, with the text pushed in pieces of this size.
Result run(const std::vector<std::string>& stops, const std::string& text, std::size_t piece) {
  StopMatcher matcher(stops);
  Result result;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const StopMatcher::Output output = matcher.push(text.substr(at, piece));
    result.text += output.text;
    if (output.stop) {
      result.stop = *output.stop;
      return result;
    }
  }
  result.text += matcher.flush();
  return result;
}

TEST(StopMatcher, FindsAStopHoweverTheTextIsCut) {
  for (std::size_t piece = 1; piece <= 12; ++piece) {
    EXPECT_EQ(run({"END"}, "abc END xyz", piece), (Result{"abc ", "END"})) << piece;
    EXPECT_EQ(run({"END"}, "EEND", piece), (Result{"E", "END"})) << piece;
    EXPECT_EQ(run({"abab"}, "aabaabab", piece), (Result{"aaba", "abab"})) << piece;
    EXPECT_EQ(run({"END"}, "EN EN EN", piece), (Result{"EN EN EN", ""})) << piece;
    EXPECT_EQ(run({"\n\n"}, "a\nb\n\nc", piece), (Result{"a\nb", "\n\n"})) << piece;
  }
}

TEST(StopMatcher, TheFirstCompleteStopWinsThenTheLongest) {
  for (std::size_t piece = 1; piece <= 6; ++piece) {
    EXPECT_EQ(run({"bcd", "c"}, "abcd", piece), (Result{"ab", "c"})) << piece;
    EXPECT_EQ(run({"d", "bcd", "cd"}, "abcd", piece), (Result{"a", "bcd"})) << piece;
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  StopMatcher matcher(std::vector<std::string>{"abcd", "cx"});
  EXPECT_EQ(matcher.push("zzab").text, "zz");
  EXPECT_EQ(matcher.push("c").text, "");
  EXPECT_EQ(matcher.push("y").text, "abcy");
  EXPECT_EQ(matcher.push("c").text, "");
  EXPECT_EQ(matcher.flush(), "c");
  EXPECT_EQ(matcher.push("x").text, "x");
}

TEST(StopMatcher, WithoutStopsAllTextPasses) {
  StopMatcher none({});
  EXPECT_EQ(none.push("text").text, "text");
  StopMatcher empty(std::vector<std::string>{""});
  const StopMatcher::Output output = empty.push("text");
  EXPECT_EQ(output.text, "text");
  EXPECT_FALSE(output.stop);
}

}  // namespace
}  // namespace headrace
