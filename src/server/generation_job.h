// One HTTP request that generates: admission, prompt, the engine's requests (prompts x n), and
// their events into a body or a stream. Lives on its exchange's executor, kept by the exchange
// until the answer is complete or the client is gone; then its engine requests are cancelled. Only
// the preparing of prompts runs elsewhere.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "metrics/metrics.h"
#include "server/answer.h"
#include "server/core.h"
#include "server/http.h"
#include "server/prompt.h"

namespace headrace {

class GenerationJob : public std::enable_shared_from_this<GenerationJob> {
 public:
  // Answers the exchange, now or later.
  static void start(ServerCore& core,
                    std::shared_ptr<Exchange> exchange,
                    std::shared_ptr<ModelEntry> model,
                    GenerationRequest request);

  GenerationJob(ServerCore& core,
                std::shared_ptr<Exchange> exchange,
                std::shared_ptr<ModelEntry> model,
                GenerationRequest request);
  ~GenerationJob();
  GenerationJob(const GenerationJob&) = delete;
  GenerationJob& operator=(const GenerationJob&) = delete;

 private:
  void begin();
  Result<std::vector<PreparedPrompt>> prepare_or_fail() const;
  Result<std::vector<PreparedPrompt>> prepare() const;
  void on_prepared(Result<std::vector<PreparedPrompt>> prompts);
  Status submit(const std::vector<PreparedPrompt>& prompts);
  RequestSpec make_spec(const PreparedPrompt& prompt, int choice_of_prompt) const;
  void add_choice(int prompt_idx,
                  const PreparedPrompt& prompt,
                  std::unique_ptr<RequestHandle> handle);

  void pump();
  void take_events();
  bool take_event(std::size_t idx,
                  TokenEvent event,
                  std::string& out);  // false: the answer ended with an error
  void absorb(std::size_t idx, const TokenEvent& event);
  void complete(std::string out);
  void write(std::string out);
  void fail(const ApiError& error);
  void abandon();
  void end(Outcome outcome);

  void arm_ping(std::chrono::milliseconds delay);
  void on_ping();

  HttpResponse stream_head() const;
  void add_common_headers(HttpResponse& response) const;
  bool begun_any() const;
  AnswerTotals totals() const;

  ServerCore& core_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<ModelEntry> model_;
  const GenerationRequest request_;
  std::unique_ptr<AnswerFormat> format_;
  boost::asio::steady_timer ping_timer_;
  std::vector<Choice> choices_;
  std::vector<std::unique_ptr<RequestHandle>> handles_;  // beside choices_
  std::vector<char> begun_;                              // beside choices_: had an event
  std::size_t num_finished_ = 0;
  std::shared_ptr<std::atomic<bool>> awake_ = std::make_shared<std::atomic<bool>>(false);
  TimePoint last_write_{};
  bool in_queue_ = false;   // holds a place of model_
  bool streaming_ = false;  // the stream's head is on its way
  bool writing_ = false;
  bool done_ = false;
};

}  // namespace headrace
