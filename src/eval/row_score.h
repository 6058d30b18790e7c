// What one row of logits says about the token that follows, and about another model's row. Sums run
// in double over float32 exponentials: exact to about 1e-6 of the value and 1e-8. Pure functions,
// any thread.
#pragma once

#include <span>

#include "base/ids.h"

namespace headrace {

struct RowScore {
  double nll = 0;   // -log p(target), nats; not finite where a logit is NaN or infinite
  TokenId top = 0;  // the most probable token; of equal ones the lowest id
};

// logits: [V], target in [0, V).
RowScore score_row(std::span<const float> logits, TokenId target);

struct RowComparison {
  RowScore model;
  RowScore reference;
  double kl = 0;  // KL(reference || model), nats, at least 0
};

// Both rows of one vocabulary: [V].
RowComparison compare_rows(std::span<const float> model,
                           std::span<const float> reference,
                           TokenId target);

}  // namespace headrace
