#include "bench/policy_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace headrace {
namespace {

// Lends a runner to an engine, which owns its parts.
class BorrowedRunner final : public StepRunner {
 public:
  explicit BorrowedRunner(StepRunner& runner) : runner_(runner) {}
  const RunnerLimits& limits() const override { return runner_.limits(); }
  int vocab_size() const override { return runner_.vocab_size(); }
  bool run(std::span<const SequenceRows> rows,
           const KvManager& kv,
           const std::atomic<bool>* abort) override {
    return runner_.run(rows, kv, abort);
  }
  std::span<const float> logits(int logit_idx) const override { return runner_.logits(logit_idx); }

 private:
  StepRunner& runner_;
};

struct BenchClient {
  std::unique_ptr<RequestHandle> handle;
  TimePoint arrival{};
  TimePoint last{};
  int num_tokens = 0;
  bool ended = false;
};

class PolicyDriver {
 public:
  PolicyDriver(const PolicyParts& parts,
               const PolicySetup& setup,
               const std::vector<LoadRequest>& workload)
      : parts_(parts), setup_(setup), workload_(workload), engine_(make_engine()) {}

  Result<PolicyRun> run() {
    start_ = parts_.clock->now();
    while (num_ended_ < workload_.size()) {
      HR_RETURN_IF_ERROR(arrive());
      const bool worked = engine_->step();
      HR_RETURN_IF_ERROR(read_all());
      note_step();
      if (!worked && num_ended_ < workload_.size()) {
        parts_.sleep(idle_time());
      }
    }
    run_.duration_s = to_seconds(last_end_ - start_);
    run_.output_tokens_per_s =
        static_cast<double>(run_.output_tokens) / std::max(run_.duration_s, 1e-9);
    const auto& waste = run_.waste_by_step;
    run_.waste_ratio = waste.empty() ? 0
                                     : std::accumulate(waste.begin(), waste.end(), 0.0) /
                                           static_cast<double>(waste.size());
    run_.padding_share =
        num_rows_ == 0 ? 0 : static_cast<double>(num_padding_) / static_cast<double>(num_rows_);
    return std::move(run_);
  }

 private:
  std::unique_ptr<Engine> make_engine() const {
    EngineOptions options;
    options.scheduler = setup_.limits;
    options.batching = setup_.batching;
    options.max_queue = static_cast<int>(workload_.size());
    options.num_step_records = 1;
    const auto longest = std::ranges::max_element(workload_, {}, &LoadRequest::output_tokens);
    options.event_ring = longest == workload_.end() ? 1 : longest->output_tokens + 1;
    auto kv = std::make_unique<KvManager>(
        setup_.groups, setup_.num_blocks, setup_.tokens_per_block, false);
    return std::make_unique<Engine>(
        Engine::Parts{.runner = std::make_unique<BorrowedRunner>(parts_.runner),
                      .kv = std::move(kv),
                      .tokenizer = parts_.tokenizer,
                      .metrics = nullptr,
                      .clock = parts_.clock},
        options);
  }

  TimePoint time_of(const LoadRequest& request) const {
    return start_ + std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double>(request.at_s - workload_.front().at_s));
  }

  Status arrive() {
    while (clients_.size() < workload_.size()) {
      const LoadRequest& request = workload_[clients_.size()];
      const TimePoint at = time_of(request);
      if (at > parts_.clock->now()) {
        break;
      }
      RequestSpec spec = make_spec(request, at);
      HR_ASSIGN_OR_RETURN(auto handle, engine_->submit(std::move(spec)));
      clients_.push_back({.handle = std::move(handle), .arrival = at, .last = at});
    }
    return {};
  }

  RequestSpec make_spec(const LoadRequest& request, TimePoint at) const {
    RequestSpec spec;
    const auto vocab =
        static_cast<float>(std::min(parts_.runner.vocab_size(), parts_.tokenizer->vocab_size()));
    for (int i = 0; i < request.prompt_tokens; ++i) {
      const auto position = (clients_.size() << 24U) + static_cast<std::uint64_t>(i);
      spec.prompt.push_back(static_cast<TokenId>(uniform(setup_.seed, position, 9) * vocab));
    }
    spec.sampling.temperature = 0;
    spec.max_tokens = request.output_tokens;
    spec.ignore_eos = true;
    spec.arrival = at;
    return spec;
  }

  Status read_all() {
    const TimePoint now = parts_.clock->now();
    for (std::size_t i = first_open_; i < clients_.size(); ++i) {
      HR_RETURN_IF_ERROR(read(clients_[i], now));
    }
    while (first_open_ < clients_.size() && clients_[first_open_].ended) {
      ++first_open_;
    }
    return {};
  }

  Status read(BenchClient& client, TimePoint now) {
    while (!client.ended) {
      const std::optional<TokenEvent> event = client.handle->poll();
      if (!event) {
        break;
      }
      HR_RETURN_IF_ERROR(take(client, *event, now));
    }
    return {};
  }

  Status take(BenchClient& client, const TokenEvent& event, TimePoint now) {
    if (event.error) {
      return *event.error;
    }
    if (event.token.token >= 0) {
      (client.num_tokens++ == 0 ? run_.ttft_ms : run_.itl_ms)
          .push_back(to_millis(now - client.last));
      client.last = now;
      ++run_.output_tokens;
    }
    if (event.finish) {
      client.ended = true;
      client.handle.reset();
      run_.e2e_ms.push_back(to_millis(now - client.arrival));
      last_end_ = now;
      ++num_ended_;
    }
    return {};
  }

  void note_step() {
    const std::vector<StepRecord> records = engine_->step_records();
    if (records.empty() || (num_steps_ > 0 && records.back().step < num_steps_)) {
      return;
    }
    const StepRecord& record = records.back();
    num_steps_ = record.step + 1;
    num_rows_ += record.num_rows;
    num_padding_ += record.num_padding_rows;
    run_.num_preempted += record.num_preempted;
    run_.most_running = std::max(run_.most_running, record.num_running);
    if (record.held_kv_slots > 0) {
      run_.waste_by_step.push_back(1 - static_cast<double>(record.live_kv_tokens) /
                                           static_cast<double>(record.held_kv_slots));
    }
  }

  // Until the next arrival, but not so long that a batch's own time passes unseen.
  Duration idle_time() const {
    constexpr Duration kShort = std::chrono::milliseconds(1);
    if (clients_.size() >= workload_.size()) {
      return kShort;
    }
    return std::clamp(time_of(workload_[clients_.size()]) - parts_.clock->now(),
                      Duration{std::chrono::microseconds(1)},
                      kShort);
  }

  const PolicyParts& parts_;
  const PolicySetup& setup_;
  const std::vector<LoadRequest>& workload_;
  std::unique_ptr<Engine> engine_;
  std::vector<BenchClient> clients_;
  std::size_t first_open_ = 0;
  std::size_t num_ended_ = 0;
  std::uint64_t num_steps_ = 0;
  std::int64_t num_rows_ = 0;
  std::int64_t num_padding_ = 0;
  TimePoint start_{};
  TimePoint last_end_{};
  PolicyRun run_;
};

}  // namespace

Result<PolicyRun> run_policy(const PolicyParts& parts,
                             const PolicySetup& setup,
                             const std::vector<LoadRequest>& workload) {
  if (workload.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "a load needs at least one request");
  }
  const int context = parts.runner.limits().max_context;
  for (const LoadRequest& request : workload) {
    if (request.prompt_tokens + request.output_tokens > context) {
      return make_error(ErrorCode::kInvalidArgument,
                        "a request of {} and {} tokens is longer than the context of {}: raise "
                        "--context, or bound the lengths with ,max=N",
                        request.prompt_tokens,
                        request.output_tokens,
                        context);
    }
  }
  return PolicyDriver(parts, setup, workload).run();
}

}  // namespace headrace
