// How far the flash and the naive form may lie apart: both compute softmax(scale q k) v in float32
// from the same values, so each differs from the exact result by its own roundings at most. First
// order in the unit roundoff u = 2^-24, after Higham (Accuracy and Stability of Numerical
// Algorithms, 2002, ch. 3 and 4). Pure.
#pragma once

namespace headrace {

struct AttentionError {
  int num_tokens = 0;
  int head_dim = 0;
  double scale = 1;      // of q.k
  double max_query = 0;  // largest magnitudes
  double max_key = 0;
  double max_value = 0;
};

// Largest |flash - naive| of an output value.
double attention_bound(const AttentionError& error);

}  // namespace headrace
