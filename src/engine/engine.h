// One model's generation: the admission queue, the sequences, and the thread that alone changes
// generation state.
//
// A step: take commands (cancel, new requests) -> end what is expired or gone, each with its last
// event -> schedule -> forward -> sample -> commit (the only place where a sequence grows) ->
// detokenize, match stops, push events. Every accepted request gets exactly one last event. A full
// event ring parks its sequence (it stops generating, keeps its blocks) until the client reads; a
// cancel frees its blocks within one step.
//
// Everything but start() and step() may be called from any thread. A handle may outlive its engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/request.h"
#include "kv/kv_manager.h"
#include "metrics/metrics.h"
#include "runner/step_runner.h"
#include "sched/policy.h"
#include "tokenizer/tokenizer.h"

namespace headrace {

struct EngineOptions {
  SchedulerLimits scheduler;
  BatchingKind batching = BatchingKind::kContinuous;
  int max_queue = 256;   // requests that wait; one more is refused (kExhausted)
  int event_ring = 256;  // events a client may leave unread before its sequence is parked
  std::int64_t max_queue_tokens = 0;  // of prompts that wait; one more is refused; 0: no limit
  Duration queue_timeout{0};          // 0: none. For requests that never ran
  // Objectives, 0: none. What is predicted to get its first token later is refused; prefill chunks
  // and the number of running sequences stay such that a step beside decode takes no longer.
  Duration slo_ttft{0};
  Duration slo_itl{0};
  int num_step_records = 4096;  // kept for tests and the dashboard
  // A step expected to take longer is given up when one of its requests is cancelled, so that the
  // blocks are back soon; the others compute it again, to the same bits. Never two in a row.
  Duration give_up_over = std::chrono::milliseconds(50);
};

// What a step did: evidence for tests, numbers for the log and the dashboard.
struct StepRecord {
  std::uint64_t step = 0;
  int num_rows = 0;
  int num_prefill_rows = 0;
  int num_padding_rows = 0;  // computed for no one (static batching)
  int num_sequences = 0;
  int num_running = 0;  // after it
  int num_preempted = 0;
  int num_started = 0;
  int num_cached_tokens = 0;  // prefix hits of the sequences it started
  bool given_up = false;      // its rows were not computed
  // After the step: places for tokens in the blocks that tables hold, and how many hold one.
  std::int64_t held_kv_slots = 0;
  std::int64_t live_kv_tokens = 0;
  Duration duration{0};
};

struct EngineStats {
  int running = 0;
  int waiting = 0;  // accepted, not running
  KvOccupancy kv;
  std::int64_t live_kv_tokens = 0;  // tokens whose KV is held by running sequences
  std::uint64_t steps = 0;
  bool draining = false;
};

class Engine {
 public:
  // The parts live as long as the engine; the runner and the kv manager are used by its thread
  // alone.
  struct Parts {
    std::unique_ptr<StepRunner> runner;
    std::unique_ptr<KvManager> kv;
    std::shared_ptr<const Tokenizer> tokenizer;
    std::shared_ptr<Metrics> metrics;  // may be null
    std::shared_ptr<const Clock> clock;
  };
  Engine(Parts parts, const EngineOptions& options);
  ~Engine();  // stops the thread; what is not finished ends with kCancelled

  void start();  // the engine's thread; without it, step() is called by hand (tests, simulation)
  bool step();   // one step; false if there was nothing to do

  // Whether submit() would take a request now: asked before a prompt is rendered and tokenized.
  Status can_submit() const;
  // After a refusal with kExhausted: when to try again, from the backlog at that time; 0: not
  // known.
  Duration retry_after() const;
  // Refused: a full queue, or a first token predicted later than it may be (kExhausted), draining
  // (kUnavailable), a prompt longer than the context or one that can never fit the KV memory
  // (kInvalidArgument). A refusal costs no work. A request may wait while a place to run is free:
  // the queue is full when max_queue wait beside those.
  Result<std::unique_ptr<RequestHandle>> submit(RequestSpec spec);

  // No new requests; returns when all have ended or `timeout` has passed (then the rest is
  // cancelled): true if all ended.
  bool drain(Duration timeout);

  // Another policy, by its name, from the next step on; what runs goes on. kInvalidArgument: there
  // is none of this name.
  Status set_batching(std::string_view name);
  std::string_view batching() const;

  EngineStats stats() const;
  std::vector<StepRecord> step_records() const;
  // Tokens of a prompt and its answer: the runner's context, or what the whole KV memory holds if
  // that is less.
  int max_context() const;
  const Tokenizer& tokenizer() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
