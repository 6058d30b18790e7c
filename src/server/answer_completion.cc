#include <utility>

#include "base/json_text.h"
#include "base/utf8.h"
#include "server/answer_forms.h"

namespace headrace {
namespace {

namespace json = boost::json;

// OpenAI's older form of log-probabilities: four lists of equal length. Offsets count characters of
// the text; a token that is only part of a character starts where that character does.
class LogprobLists {
 public:
  explicit LogprobLists(std::size_t num_chars) : num_chars_(num_chars) {}

  void add(const Tokenizer& tokenizer,
           const std::string& bytes,
           const SampledToken* token,
           int num_top) {
    tokens_.push_back(json::value(replace_invalid_utf8(bytes)));
    offsets_.push_back(num_chars_);
    for (const char byte : bytes) {
      num_chars_ += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U ? 1 : 0;
    }
    if (token == nullptr) {  // the first token of a prompt has nothing before it
      logprobs_.push_back(nullptr);
      top_.push_back(nullptr);
      return;
    }
    logprobs_.push_back(finite_logprob(token->logprob));
    json::object top;
    for (const TokenLogprob& candidate : token->top) {
      // Two tokens may read the same; the likelier one came first.
      const std::string name = replace_invalid_utf8(tokenizer.token_bytes(candidate.token));
      top.emplace(name, finite_logprob(candidate.logprob));
    }
    top_.push_back(num_top > 0 ? json::value(std::move(top)) : json::value(nullptr));
  }

  std::size_t num_chars() const { return num_chars_; }
  bool empty() const { return tokens_.empty(); }

  json::value take() {
    return json::object{{"tokens", std::move(tokens_)},
                        {"token_logprobs", std::move(logprobs_)},
                        {"top_logprobs", std::move(top_)},
                        {"text_offset", std::move(offsets_)}};
  }

 private:
  std::size_t num_chars_;
  json::array tokens_, logprobs_, top_, offsets_;
};

class CompletionFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  void begin(Choice& choice, std::string& out) override {
    if (!request().echo) {
      return;
    }
    json::value logprobs;
    if (request().wants_logprobs()) {
      LogprobLists lists(choice.num_chars);
      add_prompt(choice, lists);
      choice.num_chars = lists.num_chars();
      logprobs = lists.take();
    }
    chunk(choice, choice.prompt_text, std::move(logprobs), nullptr, nullptr, out);
  }

  void event(Choice& choice,
             const TokenEvent& event,
             const AnswerTotals* totals,
             std::string& out) override {
    json::value logprobs;
    if (request().wants_logprobs() && event.token.token >= 0) {
      LogprobLists lists(choice.num_chars);
      lists.add(
          context().tokenizer, event.piece, &event.token, request().sampling.num_top_logprobs);
      choice.num_chars = lists.num_chars();
      logprobs = lists.take();
    }
    if (event.finish) {
      chunk(choice,
            event.text,
            std::move(logprobs),
            json::value(openai_finish_reason(*event.finish)),
            request().include_usage ? nullptr : totals,
            out);
    } else if (!event.text.empty() || !logprobs.is_null()) {
      chunk(choice, event.text, std::move(logprobs), nullptr, nullptr, out);
    }
  }

  void end(const AnswerTotals& totals, std::string& out) override {
    if (request().include_usage) {
      json::object object = head();
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
        LogprobLists lists(0);
        if (request().echo) {
          add_prompt(choice, lists);
        }
        for (const TokenEvent& token : choice.tokens) {
          lists.add(
              context().tokenizer, token.piece, &token.token, request().sampling.num_top_logprobs);
        }
        logprobs = lists.take();
      }
      list.push_back(
          {{"index", choice.index},
           {"text", request().echo ? choice.prompt_text + choice.text : choice.text},
           {"logprobs", std::move(logprobs)},
           {"finish_reason", openai_finish_reason(choice.finish.value_or(FinishReason::kStop))},
           {"stop_reason", stop_reason_json(choice, request())}});
    }
    json::object object = head();
    object["choices"] = std::move(list);
    object["usage"] = usage_json(totals.usage);
    object["timings"] = timings_json(totals.timings);
    return json_text(object);
  }

 private:
  json::object head() const {
    return {{"id", context().id},
            {"object", "text_completion"},
            {"created", context().created_s},
            {"model", context().model},
            {"system_fingerprint", nullptr}};
  }

  // Control tokens that the tokenizer put in front are listed, but are no part of the text.
  void add_prompt(const Choice& choice, LogprobLists& lists) const {
    for (std::size_t i = 0; i < choice.prompt.size(); ++i) {
      const bool scored = i > 0 && i - 1 < choice.prompt_scores.size();
      lists.add(context().tokenizer,
                context().tokenizer.token_bytes(choice.prompt[i]),
                scored ? &choice.prompt_scores[i - 1] : nullptr,
                request().sampling.num_top_logprobs);
    }
  }

  void chunk(const Choice& choice,
             std::string_view text,
             json::value logprobs,
             json::value finish,
             const AnswerTotals* totals,
             std::string& out) const {
    json::object part = {{"index", choice.index},
                         {"text", text},
                         {"logprobs", std::move(logprobs)},
                         {"finish_reason", std::move(finish)}};
    append_chunk(head(), std::move(part), choice, totals, out);
  }
};

}  // namespace

std::unique_ptr<AnswerFormat> make_completion_format(AnswerContext context) {
  return std::make_unique<CompletionFormat>(std::move(context));
}

}  // namespace headrace
