#include "sampling/filters.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

void normalize(std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& c : candidates) {
    sum += c.probability;
  }
  for (Candidate& c : candidates) {
    c.probability /= sum;
  }
}

}  // namespace

void softmax(std::vector<Candidate>& candidates, float temperature) {
  const float best = std::min_element(candidates.begin(), candidates.end(), better)->logit;
  for (Candidate& c : candidates) {
    c.probability = static_cast<double>(std::exp((c.logit - best) / temperature));
  }
  normalize(candidates);
}

std::size_t count_kept(std::span<const Candidate> sorted, float top_p, float min_p) {
  const double least = sorted.front().probability * static_cast<double>(min_p);
  double sum = 0;
  std::size_t n = 0;
  while (n < sorted.size() &&
         (n == 0 || (sum < static_cast<double>(top_p) && sorted[n].probability >= least))) {
    sum += sorted[n++].probability;
  }
  return n;
}

void keep_typical(std::vector<Candidate>& sorted, float typical_p) {
  double entropy = 0;
  for (const Candidate& c : sorted) {
    entropy -= c.probability > 0 ? c.probability * std::log(c.probability) : 0;
  }
  const auto distance = [entropy](const Candidate& c) {
    return std::fabs(-std::log(c.probability) - entropy);
  };
  std::stable_sort(
      sorted.begin(), sorted.end(), [&distance](const Candidate& a, const Candidate& b) {
        return distance(a) < distance(b);
      });
  double sum = 0;
  std::size_t n = 0;
  while (n < sorted.size() && (n == 0 || sum < static_cast<double>(typical_p))) {
    sum += sorted[n++].probability;
  }
  sorted.resize(n);
  std::sort(sorted.begin(), sorted.end(), better);
  normalize(sorted);
}

}  // namespace headrace
