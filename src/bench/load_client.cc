#include "bench/load_client.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cmath>
#include <curl/curl.h>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/resource.h>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/random.h"

namespace headrace {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxErrorBytes = 2000;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

void init_curl_once() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(code);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string api_url(const LoadTarget& target, std::string_view path) {
  std::string url = target.url;
  while (url.ends_with('/')) {
    url.pop_back();
  }
  if (!url.ends_with("/v1")) {
    url += "/v1";
  }
  return url.append(path);
}

HeaderList headers_for(const LoadTarget& target) {
  HeaderList list(curl_slist_append(nullptr, "Content-Type: application/json"));
  list.reset(curl_slist_append(list.release(), "Expect:"));
  if (!target.api_key.empty()) {
    const std::string key = "Authorization: Bearer " + target.api_key;
    list.reset(curl_slist_append(list.release(), key.c_str()));
  }
  return list;
}

int int_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? static_cast<int>(value->as_int64()) : 0;
}

// One request under way: what has come, and when.
class Call {
 public:
  Call(const LoadTarget& target, std::string body, TimePoint start, LoadSample& sample)
      : body_(std::move(body)),
        headers_(headers_for(target)),
        start_(start),
        last_(start),
        sample_(sample),
        easy_(curl_easy_init()) {
    const std::string url = api_url(target, target.chat ? "/chat/completions" : "/completions");
    CURL* const easy = easy_.get();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body_.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<std::int64_t>(body_.size()));
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, std::int64_t{1});
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, std::int64_t{1});
    curl_easy_setopt(
        easy, CURLOPT_TIMEOUT_MS, static_cast<std::int64_t>(std::ceil(target.timeout_s * 1000)));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Call::on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Call::on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  }

  CURL* easy() const { return easy_.get(); }

  void finish(CURLcode code) {
    sample_.status = static_cast<int>(status());
    sample_.e2e_ms = to_millis(clock_.now() - start_);
    if (code == CURLE_OPERATION_TIMEDOUT || sample_.status == 504 || stream_status_ == 504) {
      sample_.outcome = LoadOutcome::kTimeout;
    } else if (code != CURLE_OK) {
      sample_.error = curl_easy_strerror(code);
    } else if (sample_.status == 429 || sample_.status == 503) {
      sample_.outcome = LoadOutcome::kRejected;
    } else if (sample_.status != 200) {
      sample_.error = pending_;
    } else if (!ended_) {
      sample_.error = sample_.error.empty() ? "the stream ended early" : sample_.error;
    } else {
      sample_.outcome = LoadOutcome::kOk;
      // A server that does not count: a piece of text is a token.
      if (sample_.output_tokens == 0) {
        sample_.output_tokens = num_pieces_;
      }
    }
  }

 private:
  static std::size_t on_data(char* data, std::size_t size, std::size_t count, void* self) {
    static_cast<Call*>(self)->take({data, size * count});
    return size * count;
  }
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    static_cast<Call*>(self)->take_header({data, size * count});
    return size * count;
  }

  std::int64_t status() const {
    std::int64_t status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  void take_header(std::string_view line) {
    constexpr std::string_view kName = "retry-after:";
    const bool same = line.size() > kName.size() &&
                      std::equal(kName.begin(), kName.end(), line.begin(), [](char a, char b) {
                        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + 32) : b);
                      });
    if (same) {
      const std::string value(line.substr(kName.size()));
      sample_.retry_after_s = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    }
  }

  void take(std::string_view data) {
    if (status() != 200) {
      pending_.append(data.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, pending_.size())));
      return;
    }
    pending_ += data;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      take_line(std::string_view(pending_).substr(begin, end - begin));
    }
    pending_.erase(0, begin);
  }

  void take_line(std::string_view line) {
    constexpr std::string_view kData = "data:";
    if (!line.starts_with(kData)) {
      return;
    }
    line.remove_prefix(kData.size());
    while (!line.empty() && (line.front() == ' ' || line.back() == '\r')) {
      line.front() == ' ' ? line.remove_prefix(1) : line.remove_suffix(1);
    }
    if (line == "[DONE]") {
      ended_ = sample_.error.empty();
      return;
    }
    boost::system::error_code failed;
    const json::value event = json::parse({line.data(), line.size()}, failed);
    if (!failed && event.is_object()) {
      take_event(event.get_object());
    }
  }

  void take_event(const json::object& event) {
    if (const json::value* const error = event.if_contains("error")) {
      sample_.error = json_text(*error);
      const json::object* const fields = error->if_object();
      const json::value* const code = fields != nullptr ? fields->if_contains("code") : nullptr;
      const bool late = code != nullptr && code->is_string() &&
                        std::string_view(code->as_string()) == "deadline_exceeded";
      stream_status_ = late ? 504 : 500;
      return;
    }
    const json::value* const usage = event.if_contains("usage");
    if (usage != nullptr && usage->is_object()) {
      sample_.prompt_tokens = int_at(usage->get_object(), "prompt_tokens");
      sample_.output_tokens = int_at(usage->get_object(), "completion_tokens");
    }
    if (has_text(event)) {
      const TimePoint now = clock_.now();
      const double gap_ms = to_millis(now - last_);
      last_ = now;
      if (num_pieces_++ == 0) {
        sample_.ttft_ms = gap_ms;
      } else {
        sample_.itl_ms.push_back(gap_ms);
      }
    }
  }

  static bool has_text(const json::object& event) {
    const json::value* const choices = event.if_contains("choices");
    if (choices == nullptr || !choices->is_array() || choices->get_array().empty() ||
        !choices->get_array()[0].is_object()) {
      return false;
    }
    const json::object& choice = choices->get_array()[0].get_object();
    const json::value* const delta = choice.if_contains("delta");
    const json::object& owner =
        delta != nullptr && delta->is_object() ? delta->get_object() : choice;
    const auto filled = [&owner](std::string_view name) {
      const json::value* const text = owner.if_contains(name);
      return text != nullptr && text->is_string() && !text->get_string().empty();
    };
    return filled("text") || filled("content") || filled("reasoning_content");
  }

  const std::string body_;
  const HeaderList headers_;
  const SteadyClock clock_;
  const TimePoint start_;
  TimePoint last_;  // the start, then the last piece of text
  LoadSample& sample_;
  std::string pending_;
  int num_pieces_ = 0;
  int stream_status_ = 200;
  bool ended_ = false;
  Easy easy_;  // last: its callbacks use the rest
};

std::string body_of(const LoadTarget& target, const LoadPlan& plan, std::size_t idx) {
  const LoadRequest& request = plan.requests[idx];
  const std::string prompt = make_prompt(plan.seed, idx, request.prompt_tokens);
  json::object body = {{"max_tokens", request.output_tokens},
                       {"stream", true},
                       {"stream_options", {{"include_usage", true}}},
                       {"temperature", 0}};
  if (!target.model.empty()) {
    body["model"] = target.model;
  }
  if (target.ignore_eos) {
    body["ignore_eos"] = true;
  }
  if (target.chat) {
    body["messages"] = json::array{{{"role", "user"}, {"content", prompt}}};
  } else {
    body["prompt"] = prompt;
  }
  return json_text(body);
}

class LoadRun {
 public:
  LoadRun(const LoadTarget& target, const LoadPlan& plan)
      : target_(target),
        plan_(plan),
        multi_(curl_multi_init()),
        calls_(plan.requests.size()),
        start_(clock_.now()) {
    result_.samples.resize(plan.requests.size());
    for (std::size_t idx = 0; idx < plan.requests.size(); ++idx) {
      bodies_.push_back(body_of(target, plan, idx));
    }
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, std::int64_t{4096});
  }

  LoadResult run(const std::function<void(int)>& progress) {
    const double cpu_before = cpu_seconds();
    start_ = clock_.now();
    while (num_ended_ < plan_.requests.size()) {
      start_due();
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      if (take_ended()) {
        progress(static_cast<int>(num_ended_));
        continue;  // a place is free
      }
      curl_multi_poll(multi_.get(), nullptr, 0, wait_ms(), nullptr);
    }
    result_.duration_s = to_seconds(clock_.now() - start_);
    result_.client_cpu_s = cpu_seconds() - cpu_before;
    return std::move(result_);
  }

 private:
  bool is_due(std::size_t idx) const {
    if (plan_.concurrency > 0) {
      return static_cast<int>(idx - num_ended_) < plan_.concurrency;
    }
    return plan_.requests[idx].at_s <= to_seconds(clock_.now() - start_);
  }

  void start_due() {
    for (; next_ < plan_.requests.size() && is_due(next_); ++next_) {
      LoadSample& sample = result_.samples[next_];
      const TimePoint now = clock_.now();
      sample.start_s = to_seconds(now - start_);
      calls_[next_] = std::make_unique<Call>(target_, std::move(bodies_[next_]), now, sample);
      curl_multi_add_handle(multi_.get(), calls_[next_]->easy());
    }
  }

  bool take_ended() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) {
        continue;
      }
      const CURLcode code = message->data.result;
      Call* call = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
      curl_multi_remove_handle(multi_.get(), call->easy());
      call->finish(code);
      std::ranges::find(calls_, call, &std::unique_ptr<Call>::get)->reset();
      ++num_ended_;
      any = true;
    }
    return any;
  }

  int wait_ms() const {
    constexpr double kLongest = 100;
    if (plan_.concurrency > 0 || next_ >= plan_.requests.size()) {
      return static_cast<int>(kLongest);
    }
    const double until_next = plan_.requests[next_].at_s * 1000 - to_millis(clock_.now() - start_);
    return static_cast<int>(std::clamp(std::ceil(until_next), 0.0, kLongest));
  }

  const LoadTarget& target_;
  const LoadPlan& plan_;
  const SteadyClock clock_;
  Multi multi_;
  std::vector<std::string> bodies_;
  std::vector<std::unique_ptr<Call>> calls_;  // under way, by index
  TimePoint start_;
  std::size_t next_ = 0;
  std::size_t num_ended_ = 0;
  LoadResult result_;
};

std::size_t append_to(char* data, std::size_t size, std::size_t count, void* text) {
  static_cast<std::string*>(text)->append(data, size * count);
  return size * count;
}

}  // namespace

std::string make_prompt(std::uint64_t seed, std::uint64_t number, int num_words) {
  constexpr std::array<std::string_view, 32> kWords = {
      "the",    "time",  "people", "water", "day",  "part",  "place", "work",
      "house",  "night", "world",  "life",  "hand", "small", "large", "early",
      "long",   "old",   "great",  "open",  "line", "river", "city",  "tree",
      "school", "story", "light",  "book",  "sea",  "king",  "war",   "play"};
  std::string text;
  for (int i = 0; i < num_words; ++i) {
    const auto position = number * 1'000'003 + static_cast<std::uint64_t>(i);
    const auto idx = static_cast<std::size_t>(uniform(seed, position, 7) * kWords.size());
    text += i == 0 ? "" : " ";
    text += kWords[idx];
  }
  return text;
}

Result<std::string> first_model(const LoadTarget& target) {
  init_curl_once();
  const std::string url = api_url(target, "/models");
  const HeaderList headers = headers_for(target);
  const Easy easy(curl_easy_init());
  std::string body;
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, std::int64_t{10000});
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, std::int64_t{1});
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &append_to);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  const CURLcode code = curl_easy_perform(easy.get());
  if (code != CURLE_OK) {
    const bool wrong = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
    return make_error(wrong ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable,
                      "{}: {}",
                      url,
                      curl_easy_strerror(code));
  }
  boost::system::error_code failed;
  const json::value value = json::parse(body, failed);
  const json::value* const id = failed ? nullptr : value.find_pointer("/data/0/id", failed);
  if (id == nullptr || !id->is_string()) {
    return make_error(ErrorCode::kUnavailable,
                      "{} names no model: {}; give one with --model",
                      url,
                      body.substr(0, 200));
  }
  return std::string(id->as_string());
}

Result<LoadResult> run_load(const LoadTarget& target,
                            const LoadPlan& plan,
                            const std::function<void(int)>& progress) {
  init_curl_once();
  LoadResult result = LoadRun(target, plan).run(progress);
  const bool none = std::ranges::all_of(
      result.samples, [](const LoadSample& sample) { return sample.status == 0; });
  if (none && !result.samples.empty() && result.samples[0].outcome == LoadOutcome::kFailed) {
    return make_error(ErrorCode::kUnavailable, "{}: {}", target.url, result.samples[0].error);
  }
  return result;
}

}  // namespace headrace
