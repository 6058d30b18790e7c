#include "eval/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "eval/row_score.h"

namespace headrace {
namespace {

// One model's pass over a window, block of rows by block of rows.
class WindowPass {
 public:
  WindowPass(const EvalModel& model, std::span<const TokenId> window)
      : model_(model), window_(window), table_(model.kv.open(0)) {}
  ~WindowPass() { model_.kv.close(table_); }
  WindowPass(const WindowPass&) = delete;
  WindowPass& operator=(const WindowPass&) = delete;

  // Computes the rows up to `end`, with logits of the last num_logits.
  void run_to(int end, int num_logits) {
    while (done_ < end - num_logits) {
      step(std::min(end - num_logits, done_ + model_.runner.limits().max_rows), 0);
    }
    if (num_logits > 0) {
      step(end, num_logits);
    }
  }

 private:
  void step(int end, int num_logits) {
    HR_CHECK(model_.kv.reserve(table_, done_, end));
    const SequenceRows rows{.tokens = window_.subspan(static_cast<std::size_t>(done_),
                                                      static_cast<std::size_t>(end - done_)),
                            .num_computed = done_,
                            .table = table_,
                            .num_logits = num_logits};
    HR_CHECK(model_.runner.run({&rows, 1}, model_.kv, nullptr));
    done_ = end;
    model_.kv.commit(table_, window_.first(static_cast<std::size_t>(done_)));
  }

  const EvalModel& model_;
  std::span<const TokenId> window_;
  TableId table_;
  int done_ = 0;
};

// The numbers of all scored rows, in order.
struct Rows {
  std::vector<double> nll, reference_nll, kl, same_top;

  explicit Rows(std::size_t n, bool with_reference)
      : nll(n),
        reference_nll(with_reference ? n : 0),
        kl(with_reference ? n : 0),
        same_top(with_reference ? n : 0) {}
};

class Evaluator {
 public:
  Evaluator(const EvalModel& model,
            const EvalModel* reference,
            const TextWindows& windows,
            ThreadPool& pool)
      : model_(model),
        reference_(reference),
        windows_(windows),
        pool_(pool),
        rows_(static_cast<std::size_t>(windows.count()) * scored(), reference != nullptr) {}

  Status run_window(int window_idx) {
    const std::span<const TokenId> window = windows_.window(window_idx);
    const int last = windows_.window_tokens - 1;  // has no token behind it
    WindowPass pass(model_, window);
    std::optional<WindowPass> reference_pass;
    if (reference_ != nullptr) {
      reference_pass.emplace(*reference_, window);
    }
    const std::size_t base = static_cast<std::size_t>(window_idx) * scored();
    const int first = first_scored(windows_.window_tokens);
    for (int begin = first; begin < last;) {
      const int end = std::min(last, begin + block_rows());
      pass.run_to(end, end - begin);
      if (reference_pass) {
        reference_pass->run_to(end, end - begin);
      }
      score(window.subspan(static_cast<std::size_t>(begin + 1),
                           static_cast<std::size_t>(end - begin)),
            base + static_cast<std::size_t>(begin - first));
      begin = end;
    }
    return check_finite(window_idx);
  }

  double mean_so_far(int num_windows) const {
    const auto n = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(num_windows) * scored());
    return std::accumulate(rows_.nll.begin(), rows_.nll.begin() + n, 0.0) / static_cast<double>(n);
  }

  Evaluation result() {
    Evaluation out;
    out.num_windows = windows_.count();
    out.num_tokens = static_cast<std::int64_t>(rows_.nll.size());
    out.nll = estimate(rows_.nll);
    if (reference_ == nullptr) {
      return out;
    }
    std::vector<double> change(rows_.nll.size());
    std::transform(rows_.nll.begin(),
                   rows_.nll.end(),
                   rows_.reference_nll.begin(),
                   change.begin(),
                   std::minus<>());
    Divergence& against = out.against.emplace();
    against.reference_nll = estimate(rows_.reference_nll);
    against.nll_change = estimate(change);
    against.kl = estimate(rows_.kl);
    against.top1_agreement = estimate(rows_.same_top);
    std::sort(rows_.kl.begin(), rows_.kl.end());
    const auto rank = static_cast<std::size_t>(
        std::ceil(0.99 * static_cast<double>(rows_.kl.size())));  // nearest rank, from 1
    against.kl_p99 = rows_.kl[rank - 1];
    against.kl_max = rows_.kl.back();
    return out;
  }

 private:
  std::size_t scored() const {
    return static_cast<std::size_t>(num_scored(windows_.window_tokens));
  }

  int block_rows() const {
    const auto of = [](const EvalModel& m) {
      return std::min(m.runner.limits().max_rows, m.runner.limits().max_logit_rows);
    };
    return reference_ == nullptr ? of(model_) : std::min(of(model_), of(*reference_));
  }

  // Scores the blocks that the runners hold; the first row's numbers go to `at`.
  void score(std::span<const TokenId> targets, std::size_t at) {
    pool_.run(static_cast<int>(targets.size()), [&](int i, int) {
      const TokenId target = targets[static_cast<std::size_t>(i)];
      const std::size_t row = at + static_cast<std::size_t>(i);
      if (reference_ == nullptr) {
        rows_.nll[row] = score_row(model_.runner.logits(i), target).nll;
        return;
      }
      const RowComparison both =
          compare_rows(model_.runner.logits(i), reference_->runner.logits(i), target);
      rows_.nll[row] = both.model.nll;
      rows_.reference_nll[row] = both.reference.nll;
      rows_.kl[row] = both.kl;
      rows_.same_top[row] = both.model.top == both.reference.top ? 1 : 0;
    });
  }

  Status check_finite(int window_idx) const {
    const auto begin = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(window_idx) * scored());
    const auto end = begin + static_cast<std::ptrdiff_t>(scored());
    const auto finite = [&](const std::vector<double>& values) {
      return std::all_of(
          values.begin() + begin, values.begin() + end, [](double v) { return std::isfinite(v); });
    };
    if (!finite(rows_.nll)) {
      return make_error(
          ErrorCode::kInternal, "window {}: the model's logits are not numbers", window_idx);
    }
    if (reference_ != nullptr && !(finite(rows_.reference_nll) && finite(rows_.kl))) {
      return make_error(
          ErrorCode::kInternal, "window {}: the reference's logits are not numbers", window_idx);
    }
    return {};
  }

  // The mean over all rows, and its error from the windows' means.
  Estimate estimate(const std::vector<double>& values) const {
    const auto n = static_cast<std::ptrdiff_t>(scored());
    std::vector<double> means;
    for (auto it = values.begin(); it != values.end(); it += n) {
      means.push_back(std::accumulate(it, it + n, 0.0) / static_cast<double>(n));
    }
    const auto count = static_cast<double>(means.size());
    const double mean = std::accumulate(means.begin(), means.end(), 0.0) / count;
    if (means.size() < 2) {
      return {.mean = mean, .standard_error = 0};
    }
    double squares = 0;
    for (const double m : means) {
      squares += (m - mean) * (m - mean);
    }
    return {.mean = mean, .standard_error = std::sqrt(squares / (count - 1) / count)};
  }

  const EvalModel& model_;
  const EvalModel* reference_;
  const TextWindows& windows_;
  ThreadPool& pool_;
  Rows rows_;
};

}  // namespace

Result<TextWindows> cut_windows(const Tokenizer& tokenizer,
                                std::string_view text,
                                int window_tokens,
                                int max_windows) {
  std::vector<TokenId> ids = tokenizer.encode(text, SpecialTokens::kText, AddBos::kAsModelSays);
  TextWindows windows;
  windows.window_tokens = window_tokens;
  windows.text_tokens = ids.size();
  const auto n = static_cast<std::size_t>(window_tokens);
  const std::size_t whole = ids.size() / n;
  if (whole == 0) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "the text has {} tokens, not one window of {}: give a longer text or a smaller --context",
        ids.size(),
        window_tokens);
  }
  const std::size_t wanted =
      max_windows > 0 ? std::min(whole, static_cast<std::size_t>(max_windows)) : whole;
  windows.tokens.reserve(wanted * n);
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(i * whole / wanted * n);
    windows.tokens.insert(windows.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(n));
    if (tokenizer.adds_bos() && tokenizer.bos_id() >= 0) {
      windows.tokens[i * n] = tokenizer.bos_id();
    }
  }
  return windows;
}

double perplexity(double nll) { return std::exp(nll); }

double perplexity_change_pct(const Estimate& change) { return std::expm1(change.mean) * 100; }

Result<Evaluation> evaluate(const EvalModel& model,
                            const EvalModel* reference,
                            const TextWindows& windows,
                            ThreadPool& pool,
                            const std::function<void(int done, double nll)>& progress) {
  HR_CHECK(windows.window_tokens >= 4 && windows.count() > 0);
  Evaluator evaluator(model, reference, windows, pool);
  for (int i = 0; i < windows.count(); ++i) {
    HR_RETURN_IF_ERROR(evaluator.run_window(i));
    if (progress) {
      progress(i + 1, evaluator.mean_so_far(i + 1));
    }
  }
  return evaluator.result();
}

}  // namespace headrace
