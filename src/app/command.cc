#include "app/command.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

#include "hub/resolve.h"

namespace headrace {

int fail(const Error& error) {
  finish_progress();
  fmt::print(stderr, "headrace: {}\n", error.message);
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

void print_json(const boost::json::value& value) {
  fmt::print("{}\n", boost::json::serialize(value));
}

void show_progress(const std::string& line) {
  if (::isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
  }
}

void finish_progress() {
  if (::isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

void show_pull_progress(const PullProgress& progress) {
  switch (progress.kind) {
    case PullProgress::Kind::kNotice:
      finish_progress();
      fmt::print(stderr, "{}\n", progress.text);
      break;
    case PullProgress::Kind::kWaiting:
      show_progress("waiting for another process that fetches this model");
      break;
    case PullProgress::Kind::kFetching:
      show_progress(fmt::format("fetching part {} of {}: {:.0f} of {:.0f} MB",
                                progress.part_idx + 1,
                                progress.num_parts,
                                static_cast<double>(progress.bytes) * 1e-6,
                                static_cast<double>(progress.num_bytes) * 1e-6));
      break;
    case PullProgress::Kind::kChecking:
      show_progress(fmt::format("checking {:.0f} of {:.0f} MB",
                                static_cast<double>(progress.bytes) * 1e-6,
                                static_cast<double>(progress.num_bytes) * 1e-6));
      break;
  }
}

Result<ResolvedModel> find_model_file(const std::string& model) {
  auto resolved = resolve_model(model, show_pull_progress);
  finish_progress();
  return resolved;
}

}  // namespace headrace
