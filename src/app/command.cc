#include "app/command.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <system_error>
#include <unistd.h>

#include "base/json_text.h"
#include "hub/resolve.h"

namespace headrace {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using UniqueFile = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

int fail(const Error& error) {
  finish_progress();
  std::string line = error.message;
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  fmt::print(stderr, "headrace: {}\n", line);
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

int end_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return app.exit(error);
  }
  std::string command = "headrace";
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) {
    deepest = deepest->get_subcommands().front();
    command += " " + deepest->get_name();
  }
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining(true);
  const bool lacks_command =
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      !deepest->get_subcommands([](const CLI::App*) { return true; }).empty();
  if (lacks_command && !rest.empty()) {
    what = fmt::format("there is no command '{}'", rest.front());
  }
  return fail(make_error(ErrorCode::kInvalidArgument, "{}: see {} --help", what, command));
}

CLI::Validator at_least(int low) {
  const auto check = [low](const std::string& text) {
    int value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = code == std::errc() && end == text.data() + text.size();
    return whole && value >= low ? std::string()
                                 : fmt::format("'{}' is no whole number from {} to {}",
                                               text,
                                               low,
                                               std::numeric_limits<int>::max());
  };
  return {check, "", "at_least"};
}

CLI::Validator whole_number() {
  const auto check = [](const std::string& text) {
    const char* const end = text.data() + text.size();
    std::int64_t with_sign = 0;
    std::uint64_t without = 0;
    const auto fits = [end](const std::from_chars_result& result) {
      return result.ec == std::errc() && result.ptr == end;
    };
    return fits(std::from_chars(text.data(), end, with_sign)) ||
                   fits(std::from_chars(text.data(), end, without))
               ? std::string()
               : fmt::format("'{}' is no whole number of 64 bits", text);
  };
  return {check, "", "whole_number"};
}

Result<std::string> read_file(const std::string& path) {
  const UniqueFile file(std::fopen(path.c_str(), "rb"));
  std::string text;
  char bytes[65536];
  std::size_t size = 0;
  while (file && (size = std::fread(bytes, 1, sizeof(bytes), file.get())) > 0) {
    text.append(bytes, size);
  }
  if (!file || std::ferror(file.get()) != 0) {
    const int why = errno;
    return make_error(
        ErrorCode::kNotFound, "{}: cannot be read: {}", path, std::generic_category().message(why));
  }
  return text;
}

void print_json(const boost::json::value& value) { fmt::print("{}\n", json_text(value)); }

int finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return kExitDone;
  }
  const int why = errno != 0 ? errno : EIO;
  return fail(make_error(ErrorCode::kUnavailable,
                         "cannot write to the standard output: {}",
                         std::generic_category().message(why)));
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
