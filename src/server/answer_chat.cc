#include <utility>

#include "base/json_text.h"
#include "base/utf8.h"
#include "server/answer_forms.h"

namespace headrace {
namespace {

namespace json = boost::json;

json::object token_json(const std::string& bytes, float logprob) {
  json::array numbers;
  for (const char byte : bytes) {
    numbers.push_back(static_cast<unsigned char>(byte));
  }
  return {{"token", replace_invalid_utf8(bytes)},
          {"logprob", finite_logprob(logprob)},
          {"bytes", std::move(numbers)}};
}

class ChatFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  void begin(Choice& choice, std::string& out) override {
    chunk(choice, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr, nullptr, out);
  }

  void event(Choice& choice,
             const TokenEvent& event,
             const AnswerTotals* totals,
             std::string& out) override {
    json::value logprobs;
    if (request().wants_logprobs() && event.token.token >= 0) {
      logprobs = json::object{{"content", json::array{logprob_json(event)}}};
    }
    if (!event.text.empty() || !logprobs.is_null()) {
      chunk(choice, {{"content", event.text}}, std::move(logprobs), nullptr, nullptr, out);
    }
    if (event.finish) {
      // The usage chunk, where there is one, is the last and carries the timings.
      chunk(choice,
            {},
            nullptr,
            json::value(openai_finish_reason(*event.finish)),
            request().include_usage ? nullptr : totals,
            out);
    }
  }

  void end(const AnswerTotals& totals, std::string& out) override {
    if (request().include_usage) {
      json::object object = head("chat.completion.chunk");
      object["choices"] = json::array();
      object["usage"] = usage_json(totals.usage);
      object["timings"] = timings_json(totals.timings);
      append_event(object, out);
    }
    out += "data: [DONE]\n\n";
  }

  std::string whole(const std::vector<Choice>& choices, const AnswerTotals& totals) override {
    json::array list;
    for (const Choice& choice : choices) {
      json::value logprobs;
      if (request().wants_logprobs()) {
        json::array content;
        for (const TokenEvent& token : choice.tokens) {
          content.push_back(logprob_json(token));
        }
        logprobs = json::object{{"content", std::move(content)}, {"refusal", nullptr}};
      }
      list.push_back(
          {{"index", choice.index},
           {"message", {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}}},
           {"logprobs", std::move(logprobs)},
           {"finish_reason", openai_finish_reason(choice.finish.value_or(FinishReason::kStop))},
           {"stop_reason", stop_reason_json(choice, request())}});
    }
    json::object object = head("chat.completion");
    object["choices"] = std::move(list);
    object["usage"] = usage_json(totals.usage);
    object["timings"] = timings_json(totals.timings);
    return json_text(object);
  }

 private:
  json::object head(std::string_view kind) const {
    return {{"id", context().id},
            {"object", kind},
            {"created", context().created_s},
            {"model", context().model},
            {"system_fingerprint", nullptr}};
  }

  json::object logprob_json(const TokenEvent& event) const {
    json::object object = token_json(event.piece, event.token.logprob);
    json::array top;
    for (const TokenLogprob& candidate : event.token.top) {
      top.push_back(
          token_json(context().tokenizer.token_bytes(candidate.token), candidate.logprob));
    }
    object["top_logprobs"] = std::move(top);
    return object;
  }

  void chunk(const Choice& choice,
             json::object delta,
             json::value logprobs,
             json::value finish,
             const AnswerTotals* totals,
             std::string& out) const {
    json::object part = {{"index", choice.index},
                         {"delta", std::move(delta)},
                         {"logprobs", std::move(logprobs)},
                         {"finish_reason", std::move(finish)}};
    append_chunk(head("chat.completion.chunk"), std::move(part), choice, totals, out);
  }
};

}  // namespace

std::unique_ptr<AnswerFormat> make_chat_format(AnswerContext context) {
  return std::make_unique<ChatFormat>(std::move(context));
}

std::unique_ptr<AnswerFormat> make_answer_format(AnswerContext context) {
  switch (context.request.form) {
    case ApiForm::kChat:
      return make_chat_format(std::move(context));
    case ApiForm::kTgi:
      return make_tgi_format(std::move(context));
    case ApiForm::kCompletions:
      break;
  }
  return make_completion_format(std::move(context));
}

}  // namespace headrace
