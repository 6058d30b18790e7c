#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/internal/step_loop.h"

namespace headrace {
namespace {

std::string_view metric_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
    case FinishReason::kDeadline:
      return "abort";
    case FinishReason::kError:
      break;
  }
  return "error";
}

bool contains(std::span<const TokenId> tokens, TokenId token) {
  return std::ranges::find(tokens, token) != tokens.end();
}

}  // namespace

void StepLoop::commit(const PlannedRows& rows, int logit_idx) {
  Sequence& sequence = *store_.find(rows.id);
  // Before anything of it is kept for others.
  for (int i = 0; i < rows.num_logits; ++i) {
    if (Status readable = check_logits(parts_.runner->logits(logit_idx + i)); !readable) {
      return flush_and_end(sequence, FinishReason::kError, std::move(readable.error()));
    }
  }
  sequence.num_computed = sequence.num_scheduled;
  // Every token below num_computed is known and final: what is sampled below is computed in a later
  // step.
  sequence.num_committed = sequence.num_computed;
  parts_.kv->commit(*sequence.table,
                    std::span<const TokenId>(sequence.tokens)
                        .first(static_cast<std::size_t>(sequence.num_committed)));
  if (sequence.scoring()) {
    score_prompt(sequence, rows, logit_idx);
  }
  if (!rows.completes) {
    return;
  }
  if (sequence.max_output == 0) {
    flush_and_end(sequence, FinishReason::kLength, std::nullopt);
    return;
  }
  add_token(sequence, sample(sequence, logit_idx + rows.num_logits - 1));
}

void StepLoop::score_prompt(Sequence& sequence, const PlannedRows& rows, int logit_idx) {
  const int num_top = std::max(0, sequence.spec.sampling.num_top_logprobs);
  const int end = rows.first_position + rows.num_rows;
  for (int position = end - rows.num_logits; position < end && sequence.scoring();
       ++position, ++logit_idx) {
    HR_CHECK(position == sequence.num_scored);
    const TokenId next = sequence.tokens[static_cast<std::size_t>(position) + 1];
    sequence.scores.push_back(score(parts_.runner->logits(logit_idx), next, num_top));
    ++sequence.num_scored;
  }
  if (!sequence.scoring()) {
    sequence.ring->set_prompt_scores(std::move(sequence.scores));
  }
}

SampledToken StepLoop::sample(const Sequence& sequence, int logit_idx) {
  const bool may_end = sequence.num_output() >= sequence.spec.min_tokens;
  const std::span<const TokenId> ends = sequence.end_tokens;
  const Sampler::Input input{.logits = parts_.runner->logits(logit_idx),
                             .prompt = sequence.prompt(),
                             .output = sequence.output(),
                             .forbidden = may_end ? ends.first(0) : ends,
                             .position = sequence.tokens.size()};
  return sampler_.sample(input, sequence.spec.sampling);
}

void StepLoop::add_token(Sequence& sequence, SampledToken token) {
  const TokenId id = token.token;
  sequence.tokens.push_back(id);
  ++num_generated_;
  if (parts_.metrics) {
    if (sequence.first_token) {
      parts_.metrics->inter_token(step_end_ - sequence.last_token);
    } else {
      parts_.metrics->time_to_first_token(step_end_ - sequence.spec.arrival);
    }
  }
  sequence.first_token = sequence.first_token.value_or(step_end_);
  sequence.last_token = step_end_;

  TokenEvent event;
  if (contains(sequence.end_tokens, id)) {
    event.end_token = id;
    if (contains(sequence.spec.stop_token_ids, id)) {
      event.stop_reason = std::to_string(id);
    }
    StopMatcher::Output rest = sequence.output_processor.flush();
    event.text = std::move(rest.text);
    end(sequence, FinishReason::kStop, std::move(event));
    return;
  }
  event.piece = parts_.tokenizer->token_bytes(id);
  event.token = std::move(token);
  StopMatcher::Output output = sequence.output_processor.push(id);
  event.text = std::move(output.text);
  const bool is_last = sequence.num_output() >= sequence.max_output;
  if (!output.stop && is_last) {
    output = sequence.output_processor.flush();
    event.text += output.text;
  }
  if (output.stop) {
    event.stop_reason = *std::move(output.stop);
    end(sequence, FinishReason::kStop, std::move(event));
  } else if (is_last) {
    end(sequence, FinishReason::kLength, std::move(event));
  } else {
    sequence.stalled = !sequence.ring->push(std::move(event));
  }
}

void StepLoop::flush_and_end(Sequence& sequence, FinishReason reason, std::optional<Error> error) {
  TokenEvent event;
  event.text = sequence.output_processor.flush().text;
  event.error = std::move(error);
  end(sequence, reason, std::move(event));
}

// The one place where a sequence ends: blocks back, numbers, the last event, gone from the store.
void StepLoop::end(Sequence& sequence, FinishReason reason, TokenEvent event) {
  const TimePoint now = parts_.clock->now();
  const TimePoint arrival = sequence.spec.arrival;
  event.finish = reason;
  event.usage = {.prompt_tokens = sequence.num_prompt,
                 .cached_tokens = sequence.num_cached,
                 .completion_tokens = sequence.num_output()};
  event.timings.queue_ms = to_millis(sequence.started.value_or(now) - arrival);
  event.timings.ttft_ms = sequence.first_token ? to_millis(*sequence.first_token - arrival) : 0;
  event.timings.total_ms = to_millis(now - arrival);
  if (parts_.metrics) {
    parts_.metrics->request_finished(metric_reason(reason));
    parts_.metrics->end_to_end(now - arrival);
  }
  const bool was_running = sequence.status == SequenceStatus::kRunning;
  if (!sequence.started) {
    mailbox_.prompt_started(sequence.num_prompt);
  } else if (was_running) {
    constexpr double kWeight = 0.1;
    const double ran_s = to_seconds(now - *sequence.started);
    run_s_ = run_s_ == 0 ? ran_s : run_s_ + kWeight * (ran_s - run_s_);
  }
  if (sequence.table) {
    parts_.kv->close(*sequence.table);
    sequence.table.reset();
  }
  const std::shared_ptr<EventRing> ring = std::move(sequence.ring);
  store_.erase(sequence);
  // Counted before the client can know, so that a client that has its last event finds its place
  // free.
  mailbox_.request_ended(was_running);
  ring->push(std::move(event));
}

}  // namespace headrace
