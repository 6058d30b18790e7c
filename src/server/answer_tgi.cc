#include <utility>

#include "base/json_text.h"
#include "base/utf8.h"
#include "server/answer_forms.h"

namespace headrace {
namespace {

namespace json = boost::json;

class TgiFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  void begin(Choice& /*choice*/, std::string& /*out*/) override {}

  // One event per token. Text that becomes final after the last token goes out with that token's id
  // once more.
  void event(Choice& choice,
             const TokenEvent& event,
             const AnswerTotals* totals,
             std::string& out) override {
    json::object object = {
        {"index", choice.num_tokens}, {"generated_text", nullptr}, {"details", nullptr}};
    object["token"] = token_json(
        event, event.token.token >= 0 ? event.token.token : choice.last_token, event.text);
    if (request().sampling.num_top_logprobs > 0) {
      object["top_tokens"] = top_json(event);
    }
    if (event.finish) {
      object["generated_text"] = request().echo ? choice.prompt_text + choice.text : choice.text;
      object["details"] = json::object{{"finish_reason", finish_reason(choice)},
                                       {"generated_tokens", choice.usage.completion_tokens},
                                       {"seed", seed()},
                                       {"input_length", choice.usage.prompt_tokens}};
    }
    if (totals != nullptr) {
      object["timings"] = timings_json(totals->timings);
    }
    append_event(object, out);
  }

  void end(const AnswerTotals& /*totals*/, std::string& /*out*/) override {}

  std::string whole(const std::vector<Choice>& choices, const AnswerTotals& totals) override {
    const Choice& choice = choices.front();
    json::object object = {
        {"generated_text", request().echo ? choice.prompt_text + choice.text : choice.text}};
    if (request().details) {
      json::object details = {{"finish_reason", finish_reason(choice)},
                              {"generated_tokens", choice.usage.completion_tokens},
                              {"seed", seed()},
                              {"prefill", json::array()}};
      json::array tokens;
      json::array top;
      for (const TokenEvent& event : choice.tokens) {
        tokens.push_back(token_json(event, event.token.token, event.piece));
        top.push_back(top_json(event));
      }
      details["tokens"] = std::move(tokens);
      if (request().sampling.num_top_logprobs > 0) {
        details["top_tokens"] = std::move(top);
      }
      object["details"] = std::move(details);
    }
    object["usage"] = usage_json(totals.usage);
    object["timings"] = timings_json(totals.timings);
    return json_text(object);
  }

 private:
  std::string_view finish_reason(const Choice& choice) const {
    if (choice.finish == FinishReason::kLength) {
      return "length";
    }
    return stop_reason_json(choice, request()).is_null() ? "eos_token" : "stop_sequence";
  }

  json::value seed() const {
    return request().sampling.temperature > 0 ? json::value(request().sampling.seed)
                                              : json::value(nullptr);
  }

  json::object token_json(const TokenEvent& event, TokenId id, std::string_view text) const {
    return {{"id", id},
            {"text", replace_invalid_utf8(text)},
            {"logprob", finite_logprob(event.token.logprob)},
            {"special", context().tokenizer.is_control(id)}};
  }

  json::array top_json(const TokenEvent& event) const {
    json::array top;
    for (const TokenLogprob& candidate : event.token.top) {
      top.push_back(
          {{"id", candidate.token},
           {"text", replace_invalid_utf8(context().tokenizer.token_bytes(candidate.token))},
           {"logprob", finite_logprob(candidate.logprob)},
           {"special", context().tokenizer.is_control(candidate.token)}});
    }
    return top;
  }
};

}  // namespace

std::unique_ptr<AnswerFormat> make_tgi_format(AnswerContext context) {
  return std::make_unique<TgiFormat>(std::move(context));
}

}  // namespace headrace
