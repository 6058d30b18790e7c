#include "server/models.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/engine.h"

namespace headrace {
namespace {

constexpr std::size_t kFinishedKept = 64;
constexpr int kMaxRetryAfterS = 60;
constexpr int kMaxPreparing = 16;  // beside the queue's own places

}  // namespace

std::optional<ApiError> ModelEntry::enter() {
  const int preparing = num_preparing_.fetch_add(1);
  const Status status = model_.engine->can_submit();
  if (status && preparing < model_.max_queue + kMaxPreparing) {
    return std::nullopt;
  }
  num_preparing_.fetch_sub(1);
  return status ? queue_full() : refused(status.error());
}

void ModelEntry::note_finished(TimePoint now) {
  const std::lock_guard lock(mutex_);
  finished_.push_back(now);
  if (finished_.size() > kFinishedKept) {
    finished_.pop_front();
  }
}

ApiError ModelEntry::queue_full() const {
  const int backlog = model_.engine->stats().waiting + num_preparing_.load();
  ApiError error = api_error(
      429, fmt::format("the queue of '{}' is full: {} requests wait", model_.name, backlog));
  error.retry_after_s = retry_after_s(backlog);
  return error;
}

ApiError ModelEntry::refused(const Error& error) const {
  ApiError answer = to_api_error(error);
  if (error.code == ErrorCode::kExhausted) {
    constexpr double kLongest = 3600;
    const double wait_s = std::min(std::ceil(to_seconds(model_.engine->retry_after())), kLongest);
    answer.retry_after_s =
        wait_s > 0 ? static_cast<int>(wait_s) : retry_after_s(model_.engine->stats().waiting);
  }
  return answer;
}

// The time in which the backlog is worked off at the rate at which the last requests ended.
int ModelEntry::retry_after_s(int backlog) const {
  const std::lock_guard lock(mutex_);
  if (finished_.size() < 2) {
    return 1;
  }
  const double span_s = to_seconds(finished_.back() - finished_.front());
  const double wait_s = span_s / static_cast<double>(finished_.size() - 1) * backlog;
  return std::clamp(static_cast<int>(std::ceil(wait_s)), 1, kMaxRetryAfterS);
}

void ModelTable::set(std::vector<ServedModel> models) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t created_s = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const std::lock_guard lock(mutex_);
  entries_.clear();
  for (ServedModel& model : models) {
    entries_.push_back(std::make_shared<ModelEntry>(std::move(model), created_s));
  }
}

std::shared_ptr<ModelEntry> ModelTable::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (name.empty() || entry->served().name == name) {
      return entry;
    }
  }
  return nullptr;
}

std::vector<std::shared_ptr<ModelEntry>> ModelTable::all() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

}  // namespace headrace
