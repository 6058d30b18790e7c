#include "eval/row_score.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace headrace {
namespace {

std::vector<float> random_row(unsigned seed, std::size_t size, float deviation) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> row(size);
  std::generate(row.begin(), row.end(), [&] { return normal(engine); });
  return row;
}

// All in double, two passes, nothing shared with the code under test.
std::vector<double> log_softmax(const std::vector<float>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) {
    sum += std::exp(static_cast<double>(x) - largest);
  }
  std::vector<double> out;
  for (const float x : row) {
    out.push_back(static_cast<double>(x) - largest - std::log(sum));
  }
  return out;
}

double kl_divergence(const std::vector<float>& reference, const std::vector<float>& model) {
  const std::vector<double> p = log_softmax(reference);
  const std::vector<double> q = log_softmax(model);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum += std::exp(p[i]) * (p[i] - q[i]);
  }
  return sum;
}

TEST(RowScore, TwoEqualLogitsAreOneBit) {
  const std::vector<float> row = {3.0F, 3.0F};
  EXPECT_NEAR(score_row(row, 1).nll, std::log(2.0), 1e-12);
  EXPECT_EQ(score_row(row, 1).top, 0);
}

TEST(RowScore, EqualsDoubleLogSoftmax) {
  for (const float deviation : {0.1F, 3.0F, 40.0F}) {
    const std::vector<float> row = random_row(1, 5000, deviation);
    const std::vector<double> want = log_softmax(row);
    for (const TokenId target : {0, 17, 4999}) {
      const double nll = -want[static_cast<std::size_t>(target)];
      EXPECT_NEAR(score_row(row, target).nll, nll, 1e-6 * (1 + nll)) << deviation;
    }
  }
}

TEST(RowScore, ComparisonEqualsDoubleDivergence) {
  const std::vector<float> reference = random_row(2, 5000, 3.0F);
  for (const float noise : {0.001F, 0.1F, 2.0F}) {
    std::vector<float> model = random_row(3, 5000, noise);
    for (std::size_t i = 0; i < model.size(); ++i) {
      model[i] += reference[i] + 100.0F;  // a constant changes no probability
    }
    const RowComparison got = compare_rows(model, reference, 7);
    const double want = kl_divergence(reference, model);
    EXPECT_NEAR(got.kl, want, 1e-6 * want + 1e-8) << noise;
    EXPECT_NEAR(got.model.nll, -log_softmax(model)[7], 1e-5);
    EXPECT_NEAR(got.reference.nll, -log_softmax(reference)[7], 1e-5);
  }
}

TEST(RowScore, DirectionIsFromTheReference) {
  const std::vector<float> certain = {0.0F, -30.0F};
  const std::vector<float> even = {0.0F, 0.0F};
  EXPECT_NEAR(compare_rows(even, certain, 0).kl, std::log(2.0), 1e-6);
  EXPECT_NEAR(compare_rows(certain, even, 0).kl, 15.0 - std::log(2.0), 1e-5);
}

TEST(RowScore, EqualRowsDivergeByNothing) {
  const std::vector<float> row = random_row(4, 1000, 5.0F);
  EXPECT_EQ(compare_rows(row, row, 3).kl, 0.0);
}

TEST(RowScore, NumbersThatAreNoneAreSeen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity}) {
    for (const std::size_t place : {0U, 1U, 2U}) {
      std::vector<float> row = {1.0F, 2.0F, 0.5F};
      const std::vector<float> good = row;
      row[place] = bad;
      EXPECT_FALSE(std::isfinite(score_row(row, 1).nll)) << bad << " at " << place;
      EXPECT_FALSE(std::isfinite(compare_rows(row, good, 1).kl)) << bad << " at " << place;
      EXPECT_FALSE(std::isfinite(compare_rows(good, row, 1).kl)) << bad << " at " << place;
    }
  }
}

}  // namespace
}  // namespace headrace
