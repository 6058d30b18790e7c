#include "bench/workload.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Lengths, AreRead) {
  EXPECT_EQ(parse_lengths("128")->sample(0.5, 0.5), 128);
  const auto uniform = parse_lengths("50-52");
  ASSERT_TRUE(uniform.ok());
  EXPECT_EQ(uniform->sample(0, 0), 50);
  EXPECT_EQ(uniform->sample(0.5, 0), 51);
  EXPECT_EQ(uniform->sample(0.999, 0), 52);
  const auto normal = parse_lengths("lognormal:200:0.5,max=300");
  ASSERT_TRUE(normal.ok());
  EXPECT_EQ(normal->sample(0.5, 0.25), 200);   // cos is 0: the median
  EXPECT_EQ(normal->sample(0.9999, 0), 300);   // cut
  EXPECT_EQ(normal->sample(0.9999, 0.5), 23);  // 200 * exp(-0.5 * 4.292)
}

TEST(Lengths, WrongOnesAreRefused) {
  for (const char* text : {"",
                           "x",
                           "0",
                           "-5",
                           "1.5x",
                           "9-3",
                           "0-3",
                           "5-",
                           "lognormal:0:1",
                           "lognormal:10",
                           "lognormal:10:9",
                           "normal:1:1",
                           "128,max=",
                           "128,max=0",
                           "1e99",
                           "nan",
                           "inf-3",
                           "3-inf"}) {
    EXPECT_FALSE(parse_lengths(text).ok()) << text;
  }
  EXPECT_THAT(parse_lengths("nonsense").error().message, HasSubstr("lognormal:MEDIAN:SIGMA"));
}

TEST(Workload, IsTheSameForTheSameSeed) {
  const WorkloadSpec spec{.num_requests = 50,
                          .rate = 3,
                          .prompt = *parse_lengths("10-90"),
                          .output = *parse_lengths("lognormal:40:0.8"),
                          .seed = 4};
  EXPECT_EQ(make_workload(spec), make_workload(spec));
  WorkloadSpec other = spec;
  other.seed = 5;
  EXPECT_NE(make_workload(spec), make_workload(other));
}

TEST(Workload, ArrivesAtItsRate) {
  const auto requests = make_workload({.num_requests = 4000, .rate = 5, .seed = 1});
  EXPECT_NEAR(requests.back().at_s, 800, 40);
  EXPECT_TRUE(std::ranges::is_sorted(requests, {}, &LoadRequest::at_s));
  const auto at_once = make_workload({.num_requests = 10});
  EXPECT_EQ(at_once.back().at_s, 0);
}

TEST(Workload, HasTheMedianAskedFor) {
  auto requests = make_workload(
      {.num_requests = 4001, .output = *parse_lengths("lognormal:200:0.8"), .seed = 2});
  std::ranges::sort(requests, {}, &LoadRequest::output_tokens);
  EXPECT_NEAR(requests[2000].output_tokens, 200, 10);
}

TEST(Trace, IsReadSortedWithAHeading) {
  const auto requests = parse_trace("at,prompt,output\n2.5, 10,20\r\n\n# note\n1,3,4\n", "t.csv");
  ASSERT_TRUE(requests.ok());
  EXPECT_THAT(*requests, ElementsAre(LoadRequest{1, 3, 4}, LoadRequest{2.5, 10, 20}));
}

TEST(Trace, WrongLinesAreNamed) {
  EXPECT_THAT(parse_trace("1,2,3\nx,2,3\n", "t.csv").error().message, HasSubstr("t.csv:2"));
  EXPECT_THAT(parse_trace("1,2\n", "t.csv").error().message, HasSubstr("t.csv:1"));
  EXPECT_FALSE(parse_trace("1,0,3\n", "t").ok());
  EXPECT_FALSE(parse_trace("-1,2,3\n", "t").ok());
  EXPECT_FALSE(parse_trace("1,2,3,4\n", "t").ok());
  EXPECT_THAT(parse_trace("# nothing\n", "t").error().message, HasSubstr("no request"));
}

TEST(Trace, IsSpedUp) {
  EXPECT_THAT(speed_up({{2, 1, 1}, {4, 1, 1}}, 2),
              ElementsAre(LoadRequest{1, 1, 1}, LoadRequest{2, 1, 1}));
}

}  // namespace
}  // namespace headrace
