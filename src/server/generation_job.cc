#include "server/generation_job.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>
#include <xxhash.h>

#include "server/parse_sampling.h"

namespace headrace {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMaxWriteBytes = 65536;  // of events gathered before the socket gets them

// Equal salts share a cache; the process's own secret keeps anyone from making another's salt
// collide.
std::uint64_t salt_of(const std::string& text) {
  static const std::uint64_t secret = random_seed();
  return text.empty() ? 0 : XXH3_64bits_withSeed(text.data(), text.size(), secret) | 1U;
}

std::string answer_id(const GenerationRequest& request, const std::string& request_id) {
  return (request.form == ApiForm::kChat ? "chatcmpl-" : "cmpl-") + request_id;
}

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (out.size() + name.size() > 1000) {
      return out + ", ...";
    }
    out += out.empty() ? "" : ", ";
    for (const char c : name) {  // a header holds no control characters
      out += c > 0x20 && c < 0x7F && c != ',' ? c : '?';
    }
  }
  return out;
}

Outcome outcome_of(int status) {
  switch (status) {
    case 429:
    case 503:
      return Outcome::kRejected;
    case 504:
      return Outcome::kTimeout;
    default:
      return Outcome::kFailed;
  }
}

}  // namespace

void GenerationJob::start(ServerCore& core,
                          std::shared_ptr<Exchange> exchange,
                          std::shared_ptr<ModelEntry> model,
                          GenerationRequest request) {
  auto job = std::make_shared<GenerationJob>(
      core, std::move(exchange), std::move(model), std::move(request));
  job->begin();
}

GenerationJob::GenerationJob(ServerCore& core,
                             std::shared_ptr<Exchange> exchange,
                             std::shared_ptr<ModelEntry> model,
                             GenerationRequest request)
    : core_(core),
      exchange_(std::move(exchange)),
      model_(std::move(model)),
      request_(std::move(request)),
      format_(make_answer_format({answer_id(request_, exchange_->request().id),
                                  now_s(),
                                  model_->served().name,
                                  request_,
                                  model_->tokenizer()})),
      ping_timer_(exchange_->executor()) {
  core_.num_jobs.fetch_add(1);
}

GenerationJob::~GenerationJob() {
  if (in_queue_) {
    model_->leave();
  }
  core_.num_jobs.fetch_sub(1);
}

void GenerationJob::begin() {
  exchange_->log().model = model_->served().name;
  if (core_.state.load() == ServerState::kDraining) {
    return fail(api_error(503, "the server is shutting down"));
  }
  if (std::optional<ApiError> full = model_->enter()) {
    return fail(*full);
  }
  in_queue_ = true;
  exchange_->when_gone([self = shared_from_this()] { self->abandon(); });
  if (request_.stream) {
    arm_ping(core_.options.first_ping);
  }
  asio::post(core_.pool, [self = shared_from_this()] {
    auto prompts = std::make_shared<Result<std::vector<PreparedPrompt>>>(self->prepare_or_fail());
    const Strand executor = self->exchange_->executor();
    asio::post(executor, [job = self, prompts] { job->on_prepared(std::move(*prompts)); });
  });
}

// Nothing may be thrown through the pool's threads.
Result<std::vector<PreparedPrompt>> GenerationJob::prepare_or_fail() const {
  try {
    return prepare();
  } catch (const std::exception& e) {  // no memory for the prompt
    return make_error(ErrorCode::kInternal, "the server failed: {}", e.what());
  }
}

Result<std::vector<PreparedPrompt>> GenerationJob::prepare() const {
  std::vector<PreparedPrompt> prompts;
  const int max_tokens = model_->served().engine->max_context();
  for (const PromptInput& input : request_.prompts) {
    HR_ASSIGN_OR_RETURN(
        PreparedPrompt prompt,
        prepare_prompt(model_->served(), input, request_.add_special_tokens, max_tokens));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

void GenerationJob::on_prepared(Result<std::vector<PreparedPrompt>> prompts) {
  if (done_) {
    return;
  }
  const Status submitted = prompts ? submit(*prompts) : Status();
  model_->leave();
  in_queue_ = false;
  if (!prompts) {
    return fail(to_api_error(prompts.error()));
  }
  if (submitted) {
    return pump();
  }
  fail(model_->refused(submitted.error()));
}

Status GenerationJob::submit(const std::vector<PreparedPrompt>& prompts) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (int k = 0; k < request_.n; ++k) {
      HR_ASSIGN_OR_RETURN(auto handle, model_->served().engine->submit(make_spec(prompts[i], k)));
      add_choice(static_cast<int>(i), prompts[i], std::move(handle));
    }
  }
  return {};
}

RequestSpec GenerationJob::make_spec(const PreparedPrompt& prompt, int choice_of_prompt) const {
  const HttpRequest& http = exchange_->request();
  RequestSpec spec;
  spec.name = http.id;
  spec.prompt = prompt.tokens;
  spec.sampling = request_.sampling;
  spec.sampling.seed += static_cast<std::uint64_t>(choice_of_prompt);
  spec.stop = request_.stop;
  spec.stop_token_ids = request_.stop_token_ids;
  spec.max_tokens = request_.max_tokens.value_or(model_->served().engine->max_context());
  spec.min_tokens = request_.min_tokens;
  spec.ignore_eos = request_.ignore_eos;
  spec.prompt_logprobs =
      request_.form == ApiForm::kCompletions && request_.echo && request_.wants_logprobs();
  spec.cache_salt = salt_of(request_.cache_salt);
  spec.priority = request_.priority;
  spec.arrival = http.arrival;
  std::optional<std::chrono::milliseconds> limit;
  if (core_.options.request_timeout.count() > 0) {
    limit = core_.options.request_timeout;
  }
  if (request_.deadline_ms) {
    const std::chrono::milliseconds asked(*request_.deadline_ms);
    limit = limit ? std::min(*limit, asked) : asked;
  }
  if (limit) {
    spec.deadline = http.arrival + *limit;
  }
  return spec;
}

void GenerationJob::add_choice(int prompt_idx,
                               const PreparedPrompt& prompt,
                               std::unique_ptr<RequestHandle> handle) {
  Choice choice;
  choice.index = static_cast<int>(choices_.size());
  choice.prompt_idx = prompt_idx;
  choice.usage.prompt_tokens = static_cast<int>(prompt.tokens.size());
  if (request_.echo) {
    choice.prompt_text = prompt.text;
    choice.prompt = prompt.tokens;
  }
  choices_.push_back(std::move(choice));
  begun_.push_back(0);
  // One wake-up is enough until the job has looked.
  handle->set_waker([weak = weak_from_this(), awake = awake_, executor = exchange_->executor()] {
    if (awake->exchange(true)) {
      return;
    }
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) {
        self->pump();
      }
    });
  });
  handles_.push_back(std::move(handle));
}

void GenerationJob::pump() {
  awake_->store(false);
  if (done_ || writing_) {
    return;  // after the write it is called again
  }
  try {
    take_events();
  } catch (const std::exception& e) {  // no memory for the answer
    fail(api_error(500, fmt::format("the server failed: {}", e.what())));
  }
}

void GenerationJob::take_events() {
  std::string out;
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    while (out.size() < kMaxWriteBytes && !choices_[i].finish) {
      std::optional<TokenEvent> event = handles_[i]->poll();
      if (!event) {
        break;
      }
      if (!take_event(i, std::move(*event), out)) {
        return;
      }
    }
  }
  if (num_finished_ == choices_.size()) {
    return complete(std::move(out));
  }
  if (request_.stream && (!out.empty() || (!streaming_ && begun_any()))) {
    write(std::move(out));
  }
}

bool GenerationJob::begun_any() const {
  return std::find(begun_.begin(), begun_.end(), 1) != begun_.end();
}

bool GenerationJob::take_event(std::size_t idx, TokenEvent event, std::string& out) {
  if (event.finish &&
      (event.error || *event.finish == FinishReason::kCancelled ||
       *event.finish == FinishReason::kDeadline || *event.finish == FinishReason::kError)) {
    ApiError error = api_error(503, "the request was cancelled: the server is shutting down");
    if (event.error) {
      error = to_api_error(*event.error);
    } else if (*event.finish == FinishReason::kDeadline) {
      error = api_error(504, "the deadline has passed");
    } else if (*event.finish == FinishReason::kError) {
      error = api_error(500, "the generation failed");
    }
    exchange_->log().usage = event.usage;
    exchange_->log().timings = event.timings;
    fail(error);
    return false;
  }
  absorb(idx, event);
  if (!request_.stream) {
    if (event.token.token >= 0 && request_.wants_logprobs()) {
      choices_[idx].tokens.push_back(std::move(event));
    }
    return true;
  }
  if (begun_[idx] == 0) {
    begun_[idx] = 1;
    format_->begin(choices_[idx], out);
  }
  const bool last = num_finished_ == choices_.size();
  const AnswerTotals sums = last ? totals() : AnswerTotals{};
  format_->event(choices_[idx], event, last ? &sums : nullptr, out);
  return true;
}

void GenerationJob::absorb(std::size_t idx, const TokenEvent& event) {
  Choice& choice = choices_[idx];
  const bool first = begun_[idx] == 0;
  if (first && request_.echo && request_.wants_logprobs()) {
    choice.prompt_scores = handles_[idx]->prompt_scores();
  }
  if (!request_.stream) {
    begun_[idx] = 1;
  }
  if (event.token.token >= 0) {
    ++choice.num_tokens;
    choice.usage.completion_tokens = choice.num_tokens;
    choice.last_token = event.token.token;
  }
  if (!request_.stream || request_.form == ApiForm::kTgi) {
    choice.text += event.text;
  }
  if (event.finish) {
    choice.finish = event.finish;
    choice.stop_reason = event.stop_reason;
    choice.usage = event.usage;
    choice.timings = event.timings;
    ++num_finished_;
  }
}

AnswerTotals GenerationJob::totals() const {
  AnswerTotals sums = totals_of(choices_);
  sums.timings.total_ms =
      to_millis(std::chrono::steady_clock::now() - exchange_->request().arrival);
  return sums;
}

void GenerationJob::complete(std::string out) {
  const AnswerTotals sums = totals();
  RequestLog& log = exchange_->log();
  log.usage = sums.usage;
  log.timings = sums.timings;
  log.finish = openai_finish_reason(choices_.back().finish.value_or(FinishReason::kStop));
  const auto keep = shared_from_this();
  end(Outcome::kOk);
  if (request_.stream) {
    format_->end(sums, out);
    if (!streaming_) {
      exchange_->start_stream(stream_head());
    }
    return exchange_->finish(std::move(out));
  }
  HttpResponse response = json_response(format_->whole(choices_, sums));
  add_common_headers(response);
  response.headers.emplace_back("x-queue-ms", fmt::format("{:.3f}", sums.timings.queue_ms));
  response.headers.emplace_back("x-ttft-ms", fmt::format("{:.3f}", sums.timings.ttft_ms));
  response.headers.emplace_back("x-total-ms", fmt::format("{:.3f}", sums.timings.total_ms));
  exchange_->respond(std::move(response));
}

void GenerationJob::write(std::string out) {
  if (!streaming_) {
    streaming_ = true;
    exchange_->start_stream(stream_head());
  }
  writing_ = true;
  last_write_ = std::chrono::steady_clock::now();
  exchange_->write(std::move(out), [self = shared_from_this()] {
    self->writing_ = false;
    self->pump();
  });
}

void GenerationJob::fail(const ApiError& error) {
  const auto keep = shared_from_this();
  RequestLog& log = exchange_->log();
  log.error = error.message;
  // What the client got wrong is no outcome of the service.
  if (error.status < 500 && error.status != 429) {
    log.outcome = "refused";
    done_ = true;
    ping_timer_.cancel();
    handles_.clear();
  } else {
    end(outcome_of(error.status));
  }
  if (streaming_) {
    return exchange_->finish("data: " + error.to_json() + "\n\ndata: [DONE]\n\n");
  }
  HttpResponse response = error_response(error);
  add_common_headers(response);
  exchange_->respond(std::move(response));
}

void GenerationJob::abandon() {
  if (done_) {
    return;
  }
  exchange_->log().usage = totals_of(choices_).usage;
  exchange_->log().error = "the client went away";
  end(Outcome::kAborted);
}

// The engine's requests end here; those that are not finished are cancelled.
void GenerationJob::end(Outcome outcome) {
  done_ = true;
  ping_timer_.cancel();
  handles_.clear();
  exchange_->log().outcome = name_of(outcome);
  if (model_->served().metrics) {
    model_->served().metrics->outcome(outcome);
  }
  if (outcome == Outcome::kOk) {
    model_->note_finished(std::chrono::steady_clock::now());
  }
}

void GenerationJob::arm_ping(std::chrono::milliseconds delay) {
  ping_timer_.expires_after(delay);
  ping_timer_.async_wait([weak = weak_from_this()](boost::system::error_code ec) {
    if (const auto self = weak.lock(); self && !ec) {
      self->on_ping();
    }
  });
}

void GenerationJob::on_ping() {
  if (done_) {
    return;
  }
  // A stream that has just spoken needs none.
  const auto quiet = std::chrono::steady_clock::now() - last_write_;
  if (!writing_ && quiet >= core_.options.ping_interval * 9 / 10) {
    write(": ping\n\n");
  }
  arm_ping(core_.options.ping_interval);
}

HttpResponse GenerationJob::stream_head() const {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  add_common_headers(head);
  return head;
}

void GenerationJob::add_common_headers(HttpResponse& response) const {
  if (!request_.ignored_fields.empty()) {
    response.headers.emplace_back("x-ignored-fields", join_names(request_.ignored_fields));
  }
  response.headers.emplace_back("x-seed",
                                std::to_string(static_cast<std::int64_t>(request_.sampling.seed)));
}

}  // namespace headrace
