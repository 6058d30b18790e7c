#include "server/answer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json_text.h"

namespace headrace {

namespace json = boost::json;

AnswerTotals totals_of(const std::vector<Choice>& choices) {
  AnswerTotals totals;
  int last_prompt = -1;
  for (const Choice& choice : choices) {
    totals.usage.completion_tokens += choice.usage.completion_tokens;
    if (choice.prompt_idx != last_prompt) {
      totals.usage.prompt_tokens += choice.usage.prompt_tokens;
      totals.usage.cached_tokens += choice.usage.cached_tokens;
    }
    const bool first = last_prompt == -1;
    last_prompt = choice.prompt_idx;
    totals.timings.queue_ms = std::max(totals.timings.queue_ms, choice.timings.queue_ms);
    totals.timings.total_ms = std::max(totals.timings.total_ms, choice.timings.total_ms);
    totals.timings.ttft_ms =
        first ? choice.timings.ttft_ms : std::min(totals.timings.ttft_ms, choice.timings.ttft_ms);
  }
  return totals;
}

std::string_view openai_finish_reason(FinishReason reason) {
  return reason == FinishReason::kLength ? "length" : "stop";
}

json::value stop_reason_json(const Choice& choice, const GenerationRequest& request) {
  const std::string& reason = choice.stop_reason;
  if (reason.empty()) {
    return nullptr;
  }
  if (std::find(request.stop.begin(), request.stop.end(), reason) != request.stop.end()) {
    return json::value(reason);
  }
  TokenId token = -1;
  const auto [end, code] = std::from_chars(reason.data(), reason.data() + reason.size(), token);
  const bool is_id = code == std::errc() && end == reason.data() + reason.size();
  const auto& ids = request.stop_token_ids;
  // The model's own end token is no reason worth a word.
  return is_id && std::find(ids.begin(), ids.end(), token) != ids.end() ? json::value(token)
                                                                        : json::value(nullptr);
}

json::object usage_json(const RequestUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
}

json::object timings_json(const RequestTimings& timings) {
  const auto rounded = [](double ms) { return std::round(ms * 1000) / 1000; };
  return {{"queue_ms", rounded(timings.queue_ms)},
          {"ttft_ms", rounded(timings.ttft_ms)},
          {"total_ms", rounded(timings.total_ms)}};
}

void append_event(const json::object& data, std::string& out) {
  out += "data: ";
  out += json_text(data);
  out += "\n\n";
}

void AnswerFormat::append_chunk(json::object head,
                                json::object part,
                                const Choice& choice,
                                const AnswerTotals* totals,
                                std::string& out) const {
  if (!part["finish_reason"].is_null()) {
    part["stop_reason"] = stop_reason_json(choice, request());
  }
  head["choices"] = json::array{std::move(part)};
  if (request().include_usage) {
    head["usage"] = nullptr;
  }
  if (totals != nullptr) {
    head["timings"] = timings_json(totals->timings);
  }
  append_event(head, out);
}

double finite_logprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
}

}  // namespace headrace
