// One stream of tokens: what was asked, what is known, what is computed, and where it stands. Owned
// and changed by the engine's thread alone; its status only by SequenceStore::move().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/internal/event_ring.h"
#include "engine/internal/output_processor.h"
#include "engine/request.h"
#include "kv/kv_manager.h"

namespace headrace {

enum class SequenceStatus : std::uint8_t { kWaiting, kRunning };  // what has ended is gone

struct Sequence {
  SequenceId id{};  // in order of arrival
  RequestSpec spec;
  std::shared_ptr<EventRing> ring;
  OutputProcessor output_processor;
  SequenceStatus status = SequenceStatus::kWaiting;

  std::vector<TokenId> tokens{};  // prompt, then output: all that is known
  int num_prompt = 0;
  int max_output = 0;  // max_tokens, cut to the context
  std::vector<TokenId>
      end_tokens{};  // own stop tokens and the model's, unless they are to be ignored

  // Positions [0, n): handed to the runner; their KV is in the cache; final and published.
  int num_scheduled = 0;
  int num_computed = 0;
  int num_committed = 0;

  std::optional<TableId> table{};  // exactly while running
  bool stalled = false;            // its ring is full
  int num_cached = 0;              // tokens that its first start found in the prefix cache
  int num_scored = 0;              // prompt tokens scored, of num_prompt - 1
  std::vector<SampledToken> scores{};

  std::optional<TimePoint> started{};  // for the first time
  std::optional<TimePoint> first_token{};
  TimePoint last_token{};

  int num_output() const { return static_cast<int>(tokens.size()) - num_prompt; }
  std::span<const TokenId> prompt() const {
    return std::span(tokens).first(static_cast<std::size_t>(num_prompt));
  }
  std::span<const TokenId> output() const {
    return std::span(tokens).subspan(static_cast<std::size_t>(num_prompt));
  }
  bool scoring() const { return spec.prompt_logprobs && num_scored < num_prompt - 1; }
};

}  // namespace headrace
