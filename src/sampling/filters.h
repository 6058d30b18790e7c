// The filters of a sampler over candidates sorted best first. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"

namespace headrace {

struct Candidate {
  TokenId token;
  float logit;
  double probability;  // of all candidates, sums to 1
};

// Higher logit first, then lower id: the one order of the program.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// probability = softmax of logit / temperature over the candidates, summed in their order.
void softmax(std::vector<Candidate>& candidates, float temperature);

// How many of the sorted candidates stay, at least one: the fewest whose probabilities reach top_p,
// and of those the ones that have at least min_p times the best one's.
std::size_t count_kept(std::span<const Candidate> sorted, float top_p, float min_p);

// Keeps those whose information is nearest to the expected one until they reach typical_p; sorted
// again, sums to 1.
void keep_typical(std::vector<Candidate>& sorted, float typical_p);

}  // namespace headrace
