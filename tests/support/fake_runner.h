// A StepRunner without a model: logits are a function of the token prefix, read back from a
// pretended KV cache, slot by slot through the block tables. A wrong position, a wrong or
// overwritten block, a row computed twice or not at all ends the test. Groups and windows are
// checked as attention would read them: a query at p with window w sees [p - w + 1, p].
//
// One thread, the engine's; what a test sets, it sets before or from a hook.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runner/step_runner.h"

namespace headrace::testing {

class FakeRunner final : public StepRunner {
 public:
  // Fills [V] logits of the token after this prefix.
  using LogitsFn = std::function<void(std::span<const TokenId> prefix, std::span<float> logits)>;

  struct Options {
    RunnerLimits limits{};
    int vocab_size = 300;
    std::vector<KvGroupSpec> groups{{}};  // group 0 has no window
    LogitsFn logits{};                    // none: noise from a hash of the prefix
    // Called in each run, before anything is computed; abort is looked at after it.
    std::function<void(std::span<const SequenceRows>)> hook{};
  };
  explicit FakeRunner(Options options);

  const RunnerLimits& limits() const override { return options_.limits; }
  int vocab_size() const override { return options_.vocab_size; }
  bool run(std::span<const SequenceRows> rows,
           const KvManager& kv,
           const std::atomic<bool>* abort) override;
  std::span<const float> logits(int logit_idx) const override;

 private:
  struct Slot {
    TokenId token = -1;
    int position = -1;
    std::uint64_t prefix_hash = 0;  // of the tokens up to this one
  };

  void run_rows(const SequenceRows& rows, const KvManager& kv);
  void append(const SequenceRows& rows, const KvManager& kv, int position, TokenId token);
  void check_visible(const SequenceRows& rows, const KvManager& kv, int group, int position) const;
  std::size_t slot_idx(const SequenceRows& rows,
                       const KvManager& kv,
                       int group,
                       int position) const;
  const Slot& slot(const SequenceRows& rows, const KvManager& kv, int group, int position) const;
  void add_logits(const SequenceRows& rows, const KvManager& kv, int position);

  Options options_;
  std::vector<Slot> slots_;  // [block, position in the block]
  std::vector<float> logits_;
};

// The noise that is the default: for tests that predict an answer.
void hashed_logits(std::span<const TokenId> prefix, std::span<float> logits);

}  // namespace headrace::testing
