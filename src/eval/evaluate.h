// Perplexity of a model over fixed windows of a text, and how far it is from a reference: the two
// run window by window, and of their logits only one block of rows each is held. Each window is a
// new sequence; of its tokens those of the second half are scored, each given all before it in the
// window (the rule of llama.cpp's perplexity; transformers on the same windows computes the same).
// One thread calls; the scoring uses the pool's.
//
// Standard errors are those of the windows' means, since tokens of one text lie not independently:
// deviation of the means / sqrt(windows).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kv/kv_manager.h"
#include "runner/step_runner.h"
#include "tokenizer/tokenizer.h"

namespace headrace {

// Token ids of equal windows, one after the other; the text's rest is left out.
struct TextWindows {
  int window_tokens = 0;
  std::vector<TokenId> tokens;  // [windows, window_tokens]
  std::size_t text_tokens = 0;  // of the whole text

  int count() const { return static_cast<int>(tokens.size()) / window_tokens; }
  std::span<const TokenId> window(int i) const {
    const auto n = static_cast<std::size_t>(window_tokens);
    return std::span(tokens).subspan(static_cast<std::size_t>(i) * n, n);
  }
};

// Nothing in the text is read as a special token. Where the model wants a beginning-of-sequence
// token it is put before the text and replaces each window's first. max_windows > 0: that many,
// evenly spread. kInvalidArgument: not one window.
Result<TextWindows> cut_windows(const Tokenizer& tokenizer,
                                std::string_view text,
                                int window_tokens,
                                int max_windows);

// The position of a window's first row that is scored, and the rows scored: those with a token
// behind them.
constexpr int first_scored(int window_tokens) { return window_tokens / 2; }
constexpr int num_scored(int window_tokens) {
  return window_tokens - 1 - first_scored(window_tokens);
}

// A model ready to run one sequence of a window's length; its KvManager has no prefix cache.
struct EvalModel {
  StepRunner& runner;
  KvManager& kv;
};

struct Estimate {
  double mean = 0;
  double standard_error = 0;  // 0 for one window
};

struct Divergence {
  Estimate reference_nll;  // nats a token
  Estimate nll_change;     // of the model's from the reference's, row by row
  Estimate kl;             // KL(reference || model), nats
  double kl_p99 = 0;
  double kl_max = 0;
  Estimate top1_agreement;  // share of the rows, in [0, 1]
};

struct Evaluation {
  int num_windows = 0;
  std::int64_t num_tokens = 0;  // scored
  Estimate nll;                 // nats a token
  std::optional<Divergence> against;
};

double perplexity(double nll);                         // exp(nll)
double perplexity_change_pct(const Estimate& change);  // of the means, in percent

// `reference` may be null. Vocabularies are equal. kInternal: logits that are not finite.
// `progress` hears windows done and the mean so far.
Result<Evaluation> evaluate(const EvalModel& model,
                            const EvalModel* reference,
                            const TextWindows& windows,
                            ThreadPool& pool,
                            const std::function<void(int done, double nll)>& progress);

}  // namespace headrace
