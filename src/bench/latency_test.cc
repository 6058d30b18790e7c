#include "bench/latency.h"

#include "gtest/gtest.h"

#include "bench/load_client.h"
#include "bench/rate_search.h"
#include "bench/report.h"

namespace headrace {
namespace {

TEST(Percentiles, AreByNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) {
    values.push_back(i);
  }
  const Percentiles p = percentiles(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(percentiles({}).p99, 0);
  EXPECT_EQ(percentiles({7}).p50, 7);
  EXPECT_EQ(percentiles({1, 2, 3}).p99, 3);
}

TEST(Slo, IsRead) {
  const auto slo = parse_slo("ttft_p99=2000,itl_p50=1.5");
  ASSERT_TRUE(slo.ok());
  ASSERT_EQ(slo->size(), 2U);
  EXPECT_EQ((*slo)[0].measure, "ttft");
  EXPECT_EQ((*slo)[0].quantile, 0.99);
  EXPECT_EQ((*slo)[0].limit_ms, 2000);
  EXPECT_EQ((*slo)[1].name, "itl_p50");
  EXPECT_EQ((*slo)[1].limit_ms, 1.5);
}

TEST(Slo, WrongOnesAreRefused) {
  for (const char* text : {"",
                           "ttft_p99",
                           "ttft_p99=",
                           "ttft_p99=0",
                           "ttft_p99=-1",
                           "ttft=5",
                           "ttft_p42=5",
                           "wait_p99=5",
                           "ttft_p99=5,",
                           "ttft_p99=5,ttft_p99=6",
                           "ttft_p99=nan",
                           "ttft_p99=inf",
                           "ttft_p99=5x"}) {
    EXPECT_FALSE(parse_slo(text).ok()) << text;
  }
}

TEST(RateSearch, FindsTheHighestRateThatHolds) {
  RateSearch search(1, 1.05, 30);
  while (const auto rate = search.next()) {
    search.note({*rate, *rate <= 5.3});
  }
  EXPECT_LE(search.max_rate(), 5.3);
  EXPECT_GE(search.max_rate(), 5.3 / 1.05);
  EXPECT_EQ(search.tried()[0].rate, 1);
  EXPECT_EQ(search.tried()[1].rate, 2);
  EXPECT_EQ(search.tried()[2].rate, 4);
  EXPECT_EQ(search.tried()[3].rate, 8);
  EXPECT_LE(search.tried().size(), 10U);
}

TEST(RateSearch, GoesDownWhereTheFirstIsTooHigh) {
  RateSearch search(16, 1.1, 30);
  while (const auto rate = search.next()) {
    search.note({*rate, *rate <= 0.7});
  }
  EXPECT_GE(search.max_rate(), 0.7 / 1.1);
  EXPECT_LE(search.max_rate(), 0.7);
}

TEST(RateSearch, EndsWhereNothingHolds) {
  RateSearch search(1, 1.1, 6);
  while (const auto rate = search.next()) {
    search.note({*rate, false});
  }
  EXPECT_EQ(search.max_rate(), 0);
  EXPECT_EQ(search.tried().size(), 6U);
}

LoadSample ok_sample(double ttft_ms, std::vector<double> itl_ms) {
  LoadSample sample{.outcome = LoadOutcome::kOk, .status = 200, .ttft_ms = ttft_ms};
  sample.e2e_ms = ttft_ms;
  for (const double gap : itl_ms) {
    sample.e2e_ms += gap;
  }
  sample.itl_ms = std::move(itl_ms);
  sample.prompt_tokens = 10;
  sample.output_tokens = static_cast<int>(sample.itl_ms.size()) + 1;
  return sample;
}

TEST(LoadSummary, CountsOutcomesAndLatenciesOfOkRequestsAlone) {
  LoadResult result{.samples = {ok_sample(100, {10, 20}), ok_sample(300, {30, 40})},
                    .duration_s = 2};
  LoadSample rejected{.outcome = LoadOutcome::kRejected, .status = 429, .e2e_ms = 5};
  LoadSample late{.outcome = LoadOutcome::kTimeout, .status = 504, .e2e_ms = 9000};
  LoadSample failed{.outcome = LoadOutcome::kFailed, .status = 500};
  failed.error = "broken";
  result.samples.insert(result.samples.end(), {rejected, late, failed});
  const auto slo = parse_slo("ttft_p50=200,itl_p99=50");
  const LoadSummary summary = summarize(result, *slo);
  EXPECT_EQ(summary.num_ok, 2);
  EXPECT_EQ(summary.num_rejected, 1);
  EXPECT_EQ(summary.num_timeout, 1);
  EXPECT_EQ(summary.num_failed, 1);
  EXPECT_EQ(summary.first_error, "broken");
  EXPECT_EQ(summary.output_tokens_per_s, 3);  // 6 tokens in 2 s
  EXPECT_EQ(summary.ttft_ms.p50, 100);
  EXPECT_EQ(summary.ttft_ms.p99, 300);
  EXPECT_EQ(summary.itl_ms.p50, 20);
  EXPECT_EQ(summary.e2e_ms.p99, 370);
  EXPECT_EQ(summary.rejected_ms.p99, 5);
  EXPECT_EQ(summary.slo, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(summary.goodput, 0.5);  // one that met both, in 2 s
  EXPECT_FALSE(summary.held);       // three had no answer
}

TEST(LoadSummary, AnObjectiveHoldsWhereEnoughOfAllRequestsMetIt) {
  LoadResult result{.samples = std::vector<LoadSample>(100, ok_sample(100, {10})),
                    .duration_s = 10};
  const auto slo = parse_slo("ttft_p99=100");
  EXPECT_TRUE(summarize(result, *slo).held);
  result.samples[0].outcome = LoadOutcome::kRejected;
  EXPECT_TRUE(summarize(result, *slo).held);
  result.samples[1].ttft_ms = 101;
  EXPECT_FALSE(summarize(result, *slo).held);
}

TEST(Prompts, AreWordsAndDifferByNumber) {
  EXPECT_EQ(make_prompt(1, 2, 0), "");
  const std::string text = make_prompt(1, 2, 5);
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 4);
  EXPECT_EQ(text, make_prompt(1, 2, 5));
  EXPECT_NE(text, make_prompt(1, 3, 5));
  EXPECT_NE(text, make_prompt(2, 2, 5));
}

TEST(Report, EscapesText) {
  const std::string page = report_html("a<b",
                                       {{.head = {"x&y"}, .rows = {{"\"1\""}}}},
                                       {{.title = "<t>", .series = {{"n", {{1, 2}}}}}});
  EXPECT_NE(page.find("a&lt;b"), std::string::npos);
  EXPECT_NE(page.find("x&amp;y"), std::string::npos);
  EXPECT_NE(page.find("&lt;t&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<t>"), std::string::npos);
  EXPECT_NE(page.find("<polyline"), std::string::npos);
}

TEST(Report, AChartOfNothingIsAChart) {
  EXPECT_NE(chart_svg({.title = "empty"}).find("</svg>"), std::string::npos);
  EXPECT_NE(chart_svg({.series = {cumulative("none", {})}}).find("</svg>"), std::string::npos);
  EXPECT_NE(chart_svg({.series = {{"zero", {{0, 0}}}}}).find("</svg>"), std::string::npos);
}

TEST(Report, ACumulativeLineEndsAtOne) {
  const ChartSeries line = cumulative("x", {3, 1});
  EXPECT_EQ(line.points, (std::vector<std::pair<double, double>>{{1, 0.5}, {3, 1}}));
}

}  // namespace
}  // namespace headrace
