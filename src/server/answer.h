// How an answer looks on the wire: OpenAI's chat and completion objects, TGI's. One AnswerFormat
// per HTTP request; it appends server-sent events to a buffer, or makes the whole body. Pure apart
// from the choices it is handed; one thread.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/generation_request.h"
#include "tokenizer/tokenizer.h"

namespace headrace {

// One choice of an answer, as far as it has come.
struct Choice {
  int index = 0;                            // in the answer
  int prompt_idx = 0;                       // which of the request's prompts
  std::string prompt_text;                  // where the prompt is echoed
  std::vector<TokenId> prompt;              // where it is echoed with log-probabilities
  std::vector<SampledToken> prompt_scores;  // likewise; from the second token on
  std::string text;                         // generated so far
  std::vector<TokenEvent>
      tokens;  // generated so far, where log-probabilities or details are wanted
  int num_tokens = 0;
  TokenId last_token = -1;
  std::size_t num_chars = 0;  // characters already given an offset, for streamed log-probabilities
  std::optional<FinishReason> finish;
  std::string stop_reason;
  RequestTimings timings;
  RequestUsage usage;
};

struct AnswerTotals {
  RequestUsage usage;
  RequestTimings timings;
};

// What stays the same for one answer. The references outlive it.
struct AnswerContext {
  std::string id;  // "chatcmpl-...", "cmpl-..."
  std::int64_t created_s = 0;
  std::string model;
  const GenerationRequest& request;
  const Tokenizer& tokenizer;
};

class AnswerFormat {
 public:
  explicit AnswerFormat(AnswerContext context) : context_(std::move(context)) {}
  virtual ~AnswerFormat() = default;

  // The events before a choice's first token.
  virtual void begin(Choice& choice, std::string& out) = 0;
  // One event of the engine. `totals` is set with the last event of the last choice.
  virtual void event(Choice& choice,
                     const TokenEvent& event,
                     const AnswerTotals* totals,
                     std::string& out) = 0;
  // What follows the last event.
  virtual void end(const AnswerTotals& totals, std::string& out) = 0;
  // The body of an answer that is no stream.
  virtual std::string whole(const std::vector<Choice>& choices, const AnswerTotals& totals) = 0;

 protected:
  // One event of a stream in OpenAI's form; `part` is the choice's own piece with its
  // finish_reason.
  void append_chunk(boost::json::object head,
                    boost::json::object part,
                    const Choice& choice,
                    const AnswerTotals* totals,
                    std::string& out) const;

  const AnswerContext& context() const { return context_; }
  const GenerationRequest& request() const { return context_.request; }

 private:
  AnswerContext context_;
};

std::unique_ptr<AnswerFormat> make_answer_format(AnswerContext context);

// Sums usage over choices (a prompt counts once), takes the earliest token and the longest wait.
AnswerTotals totals_of(const std::vector<Choice>& choices);

// Parts that several forms share.
std::string_view openai_finish_reason(FinishReason reason);
boost::json::value stop_reason_json(const Choice& choice, const GenerationRequest& request);
boost::json::object usage_json(const RequestUsage& usage);
boost::json::object timings_json(const RequestTimings& timings);
// One server-sent event.
void append_event(const boost::json::object& data, std::string& out);
// JSON has no infinity; -9999 is what OpenAI sends for it.
double finite_logprob(float logprob);

}  // namespace headrace
