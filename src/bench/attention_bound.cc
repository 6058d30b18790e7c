#include "bench/attention_bound.h"

#include <cmath>

#include "kernels/cpu/row_kernels.h"

namespace headrace {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kLn2 = 0.6931471805599453;
constexpr double kLog2e = 1.4426950408889634;

}  // namespace

double attention_bound(const AttentionError& error) {
  const double n = error.num_tokens;
  const double num_partitions = std::ceil(n / kPartitionTokens);
  // A score in base 2: one rounding of the scale, one of q times it, one a fused multiply-add.
  const double score =
      kLog2e * std::abs(error.scale) * error.head_dim * error.max_query * error.max_key;
  const double score_error = (error.head_dim + 2) * kUnit * score;
  // 2^(score - max): an error of the exponent is one of ln 2 times as much of the weight; the
  // difference is rounded once and at most twice the largest score; six multiply-adds, the product
  // with 2^n and the polynomial's own 2e-9.
  const double exp_error = 8 * kUnit;
  const double weight_error = kLn2 * (score_error + 2 * score * kUnit) + exp_error;
  // Flash alone: what came before decays when a larger score is met, in each step of a partition
  // and in each fold. The exponents of these factors sum up to no more than twice the largest
  // score, each rounded once.
  const double num_factors = n / kAttentionStep + 1 + 2 * num_partitions;
  const double decay_error = num_factors * (exp_error + kUnit) + kLn2 * 2 * score * kUnit;
  // Sums over a partition in order, then over the partitions (two operations a fold); the sum of
  // the weights is shorter.
  const double sum_error = (kPartitionTokens + 2 * num_partitions) * kUnit;
  // Of numerator and denominator alike, then the division.
  const double naive = 2 * (weight_error + sum_error) + 3 * kUnit;
  const double naive_sum =
      (n / 16 + 5) * kUnit;  // its weights are summed over the whole row in 16 lanes
  const double flash = 2 * (weight_error + decay_error + sum_error) + 3 * kUnit;
  constexpr double kSecondOrder = 1.01;
  return kSecondOrder * error.max_value * (naive + naive_sum + flash);
}

}  // namespace headrace
