// For the engine's tests: an engine over a fake model, stepped by hand under a clock that stands
// still.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/byte_tokenizer.h"
#include "support/fake_runner.h"

namespace headrace::testing {

struct EngineSetup {
  EngineOptions options{.scheduler = {.watermark = 0}};
  int num_blocks = 64;
  int tokens_per_block = 4;
  int max_context = 128;
  bool prefix_cache = true;
  std::vector<std::string> words;  // tokens from kFirstWord on
  FakeRunner::LogitsFn logits;
  std::function<void(std::span<const SequenceRows>)> hook;
  std::shared_ptr<const Clock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Metrics> metrics;
};

inline std::unique_ptr<Engine> make_engine(const EngineSetup& setup) {
  const SchedulerLimits& limits = setup.options.scheduler;
  FakeRunner::Options fake{.limits = {.max_rows = limits.max_step_tokens,
                                      .max_sequences = limits.max_sequences,
                                      .max_logit_rows = limits.max_logit_rows,
                                      .max_context = setup.max_context},
                           .vocab_size = kFirstWord + static_cast<int>(setup.words.size()),
                           .logits = setup.logits,
                           .hook = setup.hook};
  Engine::Parts parts{
      .runner = std::make_unique<FakeRunner>(std::move(fake)),
      .kv = std::make_unique<KvManager>(std::vector<KvGroupSpec>{{}},
                                        setup.num_blocks,
                                        setup.tokens_per_block,
                                        setup.prefix_cache),
      .tokenizer = make_byte_tokenizer(setup.words),
      .metrics = setup.metrics,
      .clock = setup.clock,
  };
  return std::make_unique<Engine>(std::move(parts), setup.options);
}

// A model that says these tokens after a prompt of `num_prompt` tokens, whatever the prompt, then
// the end token.
inline FakeRunner::LogitsFn says(int num_prompt, std::vector<TokenId> answer) {
  return [num_prompt, answer = std::move(answer)](std::span<const TokenId> prefix,
                                                  std::span<float> logits) {
    std::ranges::fill(logits, 0.0F);
    const auto at = prefix.size() - static_cast<std::size_t>(num_prompt);
    const TokenId next = at < answer.size() ? answer[at] : kEndToken;
    logits[static_cast<std::size_t>(next)] = 10;
  };
}

inline RequestSpec greedy(std::vector<TokenId> prompt, int max_tokens) {
  RequestSpec spec;
  spec.prompt = std::move(prompt);
  spec.sampling.temperature = 0;
  spec.max_tokens = max_tokens;
  return spec;
}

// What a client has at the end.
struct Answer {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<TokenEvent> events;
  const TokenEvent& last() const { return events.back(); }
  bool ended() const { return !events.empty() && events.back().finish.has_value(); }
  void read(RequestHandle& handle) {
    while (std::optional<TokenEvent> event = handle.poll()) {
      text += event->text;
      if (event->token.token >= 0) {
        tokens.push_back(event->token.token);
      }
      events.push_back(*std::move(event));
    }
  }
};

// Steps until nothing is left to do, reading after each step.
inline Answer finish(Engine& engine, RequestHandle& handle) {
  Answer answer;
  while (engine.step()) {
    answer.read(handle);
  }
  answer.read(handle);
  return answer;
}

}  // namespace headrace::testing
