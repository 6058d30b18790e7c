// The models a server offers, by name, and how busy each is. Any thread.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/server.h"

namespace headrace {

class ModelEntry {
 public:
  ModelEntry(ServedModel model, std::int64_t created_s)
      : model_(std::move(model)), created_s_(created_s) {}

  const ServedModel& served() const { return model_; }
  const Tokenizer& tokenizer() const { return *model_.tokenizer; }
  std::int64_t created_s() const { return created_s_; }

  // A place in the queue while a request is rendered and tokenized; refused (429) when the queue is
  // full, before any work. Every success is followed by one leave().
  std::optional<ApiError> enter();
  void leave() { num_preparing_.fetch_sub(1); }

  // Measures how fast requests end, for Retry-After.
  void note_finished(TimePoint now);
  ApiError queue_full() const;
  // What the engine did not take: 429 with its own Retry-After, or what the error says.
  ApiError refused(const Error& error) const;

 private:
  int retry_after_s(int backlog) const;

  const ServedModel model_;
  const std::int64_t created_s_;
  std::atomic<int> num_preparing_{0};
  mutable std::mutex mutex_;
  std::deque<TimePoint> finished_;  // the last ones, oldest first
};

class ModelTable {
 public:
  void set(std::vector<ServedModel> models);
  // By name; the first if `name` is empty. None while loading.
  std::shared_ptr<ModelEntry> find(std::string_view name) const;
  std::vector<std::shared_ptr<ModelEntry>> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ModelEntry>> entries_;
};

}  // namespace headrace
