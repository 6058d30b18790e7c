#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "engine/internal/mailbox.h"
#include "engine/internal/step_loop.h"

namespace headrace {
namespace {

// The client's end. Knows the mailbox, not the engine, so it may outlive it.
class Handle final : public RequestHandle {
 public:
  Handle(SequenceId id, std::shared_ptr<EventRing> ring, std::shared_ptr<Mailbox> mailbox)
      : id_(id), ring_(std::move(ring)), mailbox_(std::move(mailbox)) {}
  ~Handle() override {
    ring_->set_waker({});
    if (!ring_->ended()) {
      mailbox_->cancel(id_);
    }
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  std::optional<TokenEvent> poll() override { return hand_over(ring_->poll()); }
  void set_waker(std::function<void()> waker) override { ring_->set_waker(std::move(waker)); }
  TokenEvent wait() override { return hand_over(ring_->wait()).value(); }
  void cancel() override { mailbox_->cancel(id_); }
  const std::vector<SampledToken>& prompt_scores() const override { return ring_->prompt_scores(); }

 private:
  std::optional<TokenEvent> hand_over(EventRing::Polled polled) {
    if (polled.made_room) {
      mailbox_->poke();
    }
    return std::move(polled.event);
  }

  SequenceId id_;
  std::shared_ptr<EventRing> ring_;
  std::shared_ptr<Mailbox> mailbox_;
};

// The longest sequence that the whole KV memory holds, at most `limit`.
int max_kv_tokens(const KvManager& kv, int max_chunk, int limit) {
  int fits = 0;
  int too_many = limit + 1;
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    if (kv.max_blocks_for(middle, max_chunk) <= kv.num_blocks()) {
      fits = middle;
    } else {
      too_many = middle;
    }
  }
  return fits;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(Parts parts, const EngineOptions& options)
      : parts_(std::move(parts)),
        options_(options),
        runner_context_(parts_.runner->limits().max_context),
        max_context_(max_kv_tokens(*parts_.kv, options.scheduler.max_step_tokens, runner_context_)),
        mailbox_(
            std::make_shared<Mailbox>(AdmissionLimits{.max_queue = options.max_queue,
                                                      .max_queue_tokens = options.max_queue_tokens,
                                                      .ttft = options.slo_ttft},
                                      options.scheduler.max_sequences,
                                      options.batching)),
        loop_(parts_, options, *mailbox_, max_context_) {
    const RunnerLimits& limits = parts_.runner->limits();
    HR_CHECK(options.scheduler.max_step_tokens <= limits.max_rows);
    HR_CHECK(options.scheduler.max_sequences <= limits.max_sequences);
    HR_CHECK(options.scheduler.max_logit_rows <= limits.max_logit_rows);
    HR_CHECK(options.max_queue >= 0 && options.event_ring >= 1 && options.num_step_records >= 0);
    HR_CHECK(max_context_ >= 1);
  }

  ~Impl() {
    mailbox_->stop();
    if (thread_.joinable()) {
      thread_.join();
    }
    loop_.end_all(FinishReason::kCancelled);
  }

  void start() {
    HR_CHECK(!thread_.joinable());
    thread_ = std::thread([this] {
      while (!mailbox_->stopping()) {
        if (!loop_.step()) {
          sleep();
        }
      }
    });
  }

  bool step() {
    HR_CHECK(!thread_.joinable());
    return loop_.step();
  }

  Status can_submit() const { return mailbox_->can_submit(); }
  Duration retry_after() const { return mailbox_->retry_after(); }

  Result<std::unique_ptr<RequestHandle>> submit(RequestSpec spec) {
    HR_RETURN_IF_ERROR(check_prompt(spec));
    if (spec.arrival == TimePoint{}) {
      spec.arrival = parts_.clock->now();
    }
    auto ring = std::make_shared<EventRing>(options_.event_ring);
    HR_ASSIGN_OR_RETURN(const SequenceId id,
                        mailbox_->submit(std::move(spec), ring, parts_.clock->now()));
    return std::unique_ptr<RequestHandle>(std::make_unique<Handle>(id, std::move(ring), mailbox_));
  }

  Status set_batching(std::string_view name) {
    const std::optional<BatchingKind> kind = batching_kind(name);
    if (!kind) {
      Error error =
          make_error(ErrorCode::kInvalidArgument, "batching '{}': it is {}", name, kBatchingNames);
      error.param = "batching";
      return error;
    }
    mailbox_->set_batching(*kind);
    return {};
  }

  std::string_view batching() const { return name_of(mailbox_->batching()); }

  bool drain(Duration timeout) {
    mailbox_->close();
    const bool all_ended =
        thread_.joinable() ? mailbox_->wait_until_idle(timeout) : step_until_idle(timeout);
    mailbox_->stop();
    if (thread_.joinable()) {
      thread_.join();
    }
    loop_.end_all(FinishReason::kCancelled);
    return all_ended;
  }

  EngineStats stats() const {
    EngineStats stats = loop_.stats();
    stats.waiting = mailbox_->num_waiting();
    stats.draining = mailbox_->closed();
    return stats;
  }

  std::vector<StepRecord> step_records() const { return loop_.records(); }
  int max_context() const { return max_context_; }
  const Tokenizer& tokenizer() const { return *parts_.tokenizer; }

 private:
  Status check_prompt(const RequestSpec& spec) const {
    const auto refuse = [](Error error) {
      error.param = "prompt";
      return error;
    };
    const std::size_t size = spec.prompt.size();
    if (size == 0) {
      return refuse(
          make_error(ErrorCode::kInvalidArgument, "the prompt is empty: give at least one token"));
    }
    if (size > static_cast<std::size_t>(runner_context_)) {
      return refuse(
          make_error(ErrorCode::kInvalidArgument,
                     "the prompt has {} tokens, the context {}: shorten it, or serve with a longer "
                     "--context",
                     size,
                     runner_context_));
    }
    if (size > static_cast<std::size_t>(max_context_)) {
      return refuse(
          make_error(ErrorCode::kInvalidArgument,
                     "the prompt has {} tokens, the KV memory holds {}: shorten it, or serve with "
                     "more --kv-memory",
                     size,
                     max_context_));
    }
    const int vocab_size = parts_.runner->vocab_size();
    const auto bad = std::ranges::find_if(
        spec.prompt, [vocab_size](TokenId token) { return token < 0 || token >= vocab_size; });
    if (bad != spec.prompt.end()) {
      return refuse(make_error(ErrorCode::kInvalidArgument,
                               "token {} of the prompt is {}: the vocabulary has 0 to {}",
                               bad - spec.prompt.begin(),
                               *bad,
                               vocab_size - 1));
    }
    return {};
  }

  void sleep() {
    std::optional<Duration> timeout;
    if (const std::optional<TimePoint> next = loop_.next_deadline()) {
      timeout = std::max(Duration{0}, *next - parts_.clock->now());
    }
    mailbox_->wait(timeout);
  }

  bool step_until_idle(Duration timeout) {
    const TimePoint until = parts_.clock->now() + timeout;
    while (mailbox_->num_active() > 0 && parts_.clock->now() < until && loop_.step()) {
    }
    return mailbox_->num_active() == 0;
  }

  Parts parts_;
  const EngineOptions options_;
  const int runner_context_;
  const int max_context_;
  const std::shared_ptr<Mailbox> mailbox_;
  StepLoop loop_;
  std::thread thread_;
};

Engine::Engine(Parts parts, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(std::move(parts), options)) {}
Engine::~Engine() = default;

void Engine::start() { impl_->start(); }
bool Engine::step() { return impl_->step(); }
Status Engine::can_submit() const { return impl_->can_submit(); }
Duration Engine::retry_after() const { return impl_->retry_after(); }
Result<std::unique_ptr<RequestHandle>> Engine::submit(RequestSpec spec) {
  return impl_->submit(std::move(spec));
}
bool Engine::drain(Duration timeout) { return impl_->drain(timeout); }
Status Engine::set_batching(std::string_view name) { return impl_->set_batching(name); }
std::string_view Engine::batching() const { return impl_->batching(); }
EngineStats Engine::stats() const { return impl_->stats(); }
std::vector<StepRecord> Engine::step_records() const { return impl_->step_records(); }
int Engine::max_context() const { return impl_->max_context(); }
const Tokenizer& Engine::tokenizer() const { return impl_->tokenizer(); }

}  // namespace headrace
