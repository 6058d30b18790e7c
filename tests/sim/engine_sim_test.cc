// Simulation: the real scheduler, KV manager and engine over a fake model and a clock that moves
// only with the steps. Each seed is one world: its sizes, arrivals, cancels, slow readers,
// deadlines and failures. After each step all invariants are checked (by the engine and the fake
// model, in builds with HEADRACE_DCHECK, and here in all); at the end each accepted request had
// exactly one last event, and each whole answer is the one that the model gives alone.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "support/byte_tokenizer.h"
#include "support/fake_runner.h"

namespace headrace {
namespace {

using testing::FakeRunner;
using testing::kEndToken;
using testing::kFirstWord;
using testing::make_byte_tokenizer;

constexpr int kAlphabet = 6;  // tokens that the model says, beside the end: prefixes repeat

constexpr std::array<BatchingKind, 3> kBatchings = {
    BatchingKind::kContinuous, BatchingKind::kDynamic, BatchingKind::kStatic};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  int upto(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n + 1)); }
  int between(int low, int high) { return low + upto(high - low); }
  bool one_in(int n) { return upto(n - 1) == 0; }

 private:
  std::mt19937_64 engine_;
};

void say_few_tokens(std::span<const TokenId> prefix, std::span<float> logits) {
  std::ranges::fill(logits, -100.0F);
  std::array<float, kAlphabet + 1> few{};
  testing::hashed_logits(prefix, few);
  std::copy_n(few.begin(), kAlphabet, logits.begin() + 'a');
  logits[static_cast<std::size_t>(kEndToken)] = few[kAlphabet] - 1;
}

struct World {
  EngineOptions options;
  std::vector<KvGroupSpec> groups;
  int num_blocks = 0;
  int max_context = 0;
  bool prefix_cache = true;
};

World make_world(Dice& dice) {
  World world;
  SchedulerLimits& limits = world.options.scheduler;
  limits.max_sequences = dice.between(1, 8);
  limits.max_step_tokens = dice.between(limits.max_sequences + 1, 40);
  limits.max_logit_rows = dice.between(limits.max_sequences, 16);
  limits.watermark = dice.one_in(2) ? 0 : 0.05;
  limits.batch_delay = std::chrono::milliseconds(dice.upto(20));
  limits.reserved_tokens = dice.one_in(5) ? dice.between(1, 60) : 0;
  world.options.batching = kBatchings[static_cast<std::size_t>(dice.upto(2))];
  world.options.max_queue = dice.between(0, 12);
  world.options.event_ring = dice.between(1, 8);
  world.options.queue_timeout = std::chrono::milliseconds(dice.one_in(3) ? 200 : 0);
  world.options.max_queue_tokens = dice.one_in(3) ? dice.between(1, 120) : 0;
  world.options.slo_ttft = std::chrono::milliseconds(dice.one_in(4) ? dice.between(20, 300) : 0);
  world.options.slo_itl = std::chrono::milliseconds(dice.one_in(4) ? dice.between(2, 20) : 0);
  world.options.give_up_over = dice.one_in(2) ? Duration{0} : std::chrono::milliseconds(3);
  world.groups = {{0}};
  if (dice.one_in(3)) {
    world.groups.push_back({dice.between(2, 12)});
  }
  world.num_blocks = dice.between(8, 40) * static_cast<int>(world.groups.size());
  world.max_context = dice.between(20, 90);
  world.prefix_cache = !dice.one_in(4);
  return world;
}

struct Client {
  RequestSpec spec;
  std::unique_ptr<RequestHandle> handle;
  std::vector<TokenId> tokens;
  std::string text;
  std::optional<TokenEvent> last;
  bool slow = false;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : dice_(seed), world_(make_world(dice_)), engine_(make_engine()) {}

  void run() {
    const int num_requests = dice_.between(1, 16);
    int num_steps = 0;
    while (static_cast<int>(clients_.size()) < num_requests || any_open()) {
      ASSERT_LT(++num_steps, 20000) << "no end";
      if (static_cast<int>(clients_.size()) < num_requests && dice_.one_in(3)) {
        arrive();
      }
      disturb();
      const bool worked = engine_->step();
      check_step();
      read_some(worked);
    }
    while (engine_->step()) {
    }
    EXPECT_EQ(engine_->stats().kv.used, 0);
    EXPECT_EQ(engine_->stats().waiting + engine_->stats().running, 0);
    for (const Client& client : clients_) {
      check_answer(client);
    }
    note_records();
  }

  int num_preempted = 0;
  int num_given_up = 0;
  int num_cached = 0;
  int num_whole = 0;
  int num_padding_rows = 0;

 private:
  std::unique_ptr<Engine> make_engine() {
    const SchedulerLimits& limits = world_.options.scheduler;
    FakeRunner::Options fake{.limits = {.max_rows = limits.max_step_tokens,
                                        .max_sequences = limits.max_sequences,
                                        .max_logit_rows = limits.max_logit_rows,
                                        .max_context = world_.max_context},
                             .vocab_size = kFirstWord,
                             .groups = world_.groups,
                             .logits = say_few_tokens};
    fake.hook = [this](std::span<const SequenceRows>) {
      clock_->advance(std::chrono::milliseconds(dice_.between(1, 8)));
      if (!clients_.empty() && dice_.one_in(20)) {
        cancel(
            clients_[static_cast<std::size_t>(dice_.upto(static_cast<int>(clients_.size()) - 1))]);
      }
    };
    Engine::Parts parts{
        .runner = std::make_unique<FakeRunner>(std::move(fake)),
        .kv = std::make_unique<KvManager>(world_.groups, world_.num_blocks, 4, world_.prefix_cache),
        .tokenizer = tokenizer(),
        .metrics = nullptr,
        .clock = clock_};
    return std::make_unique<Engine>(std::move(parts), world_.options);
  }

  static std::shared_ptr<const Tokenizer> tokenizer() {
    static const std::shared_ptr<const Tokenizer> shared = make_byte_tokenizer();
    return shared;
  }

  RequestSpec make_spec() {
    RequestSpec spec;
    const int length = dice_.between(1, 40);
    const TokenId start = 'a' + dice_.upto(1);  // few beginnings: prefixes are shared
    for (int i = 0; i < length; ++i) {
      spec.prompt.push_back(i < 24 ? start + i % 3 : 'a' + dice_.upto(kAlphabet - 1));
    }
    spec.max_tokens = dice_.upto(30);
    spec.min_tokens = dice_.one_in(4) ? dice_.upto(10) : 0;
    spec.ignore_eos = dice_.one_in(4);
    spec.sampling.temperature = dice_.one_in(2) ? 0.0F : 1.0F;
    spec.sampling.seed = static_cast<std::uint64_t>(dice_.upto(1000));
    spec.prompt_logprobs = dice_.one_in(6);
    spec.priority = dice_.one_in(4) ? dice_.upto(2) : 0;
    spec.cache_salt = static_cast<std::uint64_t>(dice_.upto(1));
    if (dice_.one_in(3)) {
      spec.stop = {"ab", "cdc"};
    }
    if (dice_.one_in(8)) {
      spec.deadline = clock_->now() + std::chrono::milliseconds(dice_.between(1, 150));
    }
    return spec;
  }

  void arrive() {
    Client client;
    client.spec = make_spec();
    client.slow = dice_.one_in(4);
    Result<std::unique_ptr<RequestHandle>> handle = engine_->submit(client.spec);
    if (handle.ok()) {
      client.handle = std::move(handle).value();
    } else {
      const ErrorCode code = handle.error().code;
      const bool fits = static_cast<int>(client.spec.prompt.size()) <= engine_->max_context();
      EXPECT_EQ(code, fits ? ErrorCode::kExhausted : ErrorCode::kInvalidArgument);
    }
    clients_.push_back(std::move(client));
  }

  static void cancel(Client& client) {
    if (client.handle) {
      client.handle->cancel();
    }
  }

  void disturb() {
    clock_->advance(std::chrono::microseconds(dice_.upto(300)));
    if (clients_.empty()) {
      return;
    }
    Client& client =
        clients_[static_cast<std::size_t>(dice_.upto(static_cast<int>(clients_.size()) - 1))];
    if (dice_.one_in(200)) {
      EXPECT_TRUE(
          engine_->set_batching(name_of(kBatchings[static_cast<std::size_t>(dice_.upto(2))])));
      switched_ = true;
    }
    if (dice_.one_in(40)) {
      cancel(client);
    } else if (dice_.one_in(80) && client.handle && !client.last) {
      client.handle.reset();  // goes away
    }
  }

  void read_some(bool worked) {
    for (Client& client : clients_) {
      // Who waits reads in the end, or an engine of stalled sequences would wait for ever.
      if (client.handle && (!client.slow || !worked || dice_.one_in(10))) {
        read(client);
      }
    }
  }

  static void read(Client& client) {
    while (std::optional<TokenEvent> event = client.handle->poll()) {
      ASSERT_FALSE(client.last) << "an event after the last";
      if (event->token.token >= 0) {
        client.tokens.push_back(event->token.token);
      }
      client.text += event->text;
      if (event->finish) {
        client.last = std::move(event);
      }
    }
  }

  bool any_open() const {
    return std::ranges::any_of(clients_, [](const Client& c) { return c.handle && !c.last; });
  }

  void check_step() {
    const EngineStats stats = engine_->stats();
    ASSERT_EQ(stats.kv.free + stats.kv.cached + stats.kv.used, world_.num_blocks);
    ASSERT_GE(stats.waiting, 0);
    if (!switched_) {
      check_policy();
    }
  }

  // What each policy promises of every step.
  void check_policy() {
    const std::vector<StepRecord> records = engine_->step_records();
    for (; num_checked_ < records.size(); ++num_checked_) {
      const StepRecord& record = records[num_checked_];
      ASSERT_GE(record.held_kv_slots, record.live_kv_tokens);
      ASSERT_LE(record.num_padding_rows, record.num_rows);
      switch (world_.options.batching) {
        case BatchingKind::kContinuous:
        case BatchingKind::kDynamic:
          ASSERT_EQ(record.num_padding_rows, 0);
          break;
        case BatchingKind::kStatic:
          // Prompts first, then all decode: never both.
          ASSERT_TRUE(record.num_prefill_rows == 0 || record.num_prefill_rows == record.num_rows);
          break;
      }
    }
  }

  void check_answer(const Client& client) {
    if (!client.handle || !client.last) {
      return;  // refused, or gone
    }
    const FinishReason reason = *client.last->finish;
    ASSERT_NE(reason, FinishReason::kError);
    EXPECT_EQ(client.last->error.has_value(), reason == FinishReason::kDeadline);
    if (reason == FinishReason::kStop || reason == FinishReason::kLength) {
      check_whole(client, reason);
    }
    check_tokens(client);
  }

  void check_whole(const Client& client, FinishReason reason) {
    const int room = engine_->max_context() - static_cast<int>(client.spec.prompt.size());
    const int most = std::min(client.spec.max_tokens, room);
    EXPECT_LE(static_cast<int>(client.tokens.size()), most);
    EXPECT_TRUE(reason == FinishReason::kStop || static_cast<int>(client.tokens.size()) == most);
    EXPECT_TRUE(!client.spec.prompt_logprobs ||
                client.handle->prompt_scores().size() == client.spec.prompt.size() - 1);
    ++num_whole;
  }

  // The model's own words, one after the other, without an engine.
  void check_tokens(const Client& client) {
    std::vector<TokenId> known = client.spec.prompt;
    std::vector<float> logits(static_cast<std::size_t>(kFirstWord));
    const std::vector<TokenId> ends =
        client.spec.ignore_eos ? std::vector<TokenId>{} : std::vector<TokenId>{kEndToken};
    const std::size_t num_prompt = client.spec.prompt.size();
    const auto next = [&](int num_output) {
      say_few_tokens(known, logits);
      const Sampler::Input input{
          .logits = logits,
          .prompt = std::span(known).first(num_prompt),
          .output = std::span(known).subspan(num_prompt),
          .forbidden = num_output < client.spec.min_tokens ? ends : std::span<const TokenId>{},
          .position = known.size()};
      return sampler_.sample(input, client.spec.sampling).token;
    };
    int num_output = 0;
    for (const TokenId token : client.tokens) {
      ASSERT_EQ(token, next(num_output));
      known.push_back(token);
      ++num_output;
    }
    if (client.last->end_token >= 0) {
      EXPECT_EQ(client.last->end_token, next(num_output));
    }
  }

  void note_records() {
    for (const StepRecord& record : engine_->step_records()) {
      EXPECT_LE(record.num_rows, world_.options.scheduler.max_step_tokens);
      EXPECT_LE(record.num_sequences, world_.options.scheduler.max_sequences);
      num_preempted += record.num_preempted;
      num_given_up += record.given_up ? 1 : 0;
      num_cached += record.num_cached_tokens;
      num_padding_rows += record.num_padding_rows;
    }
  }

  Dice dice_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  World world_;
  Sampler sampler_;
  std::vector<Client> clients_;
  bool switched_ = false;           // the policy, at least once
  std::size_t num_checked_ = 0;     // of the records
  std::unique_ptr<Engine> engine_;  // last: its hook uses the rest
};

class EngineSimulation : public ::testing::TestWithParam<int> {};

TEST_P(EngineSimulation, HoldsForManySeeds) {
  constexpr std::uint64_t kSeedsEach = 250;
  int num_preempted = 0;
  int num_given_up = 0;
  int num_cached = 0;
  int num_whole = 0;
  int num_padding_rows = 0;
  for (std::uint64_t i = 0; i < kSeedsEach; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam()) * kSeedsEach + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.run();
    ASSERT_FALSE(HasFailure());
    num_preempted += simulation.num_preempted;
    num_given_up += simulation.num_given_up;
    num_cached += simulation.num_cached;
    num_whole += simulation.num_whole;
    num_padding_rows += simulation.num_padding_rows;
  }
  // The worlds are such that it all happens.
  EXPECT_GT(num_preempted, 20);
  EXPECT_GT(num_given_up, 20);
  EXPECT_GT(num_cached, 1000);
  EXPECT_GT(num_whole, 500);
  EXPECT_GT(num_padding_rows, 1000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSimulation, ::testing::Range(0, 12));

}  // namespace
}  // namespace headrace
