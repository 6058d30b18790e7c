// Runs each target over its committed inputs and over mutations of them. The quick form always
// makes the same inputs; SlowFuzz goes on for HEADRACE_FUZZ_SECONDS with a new seed each time,
// which it prints and HEADRACE_FUZZ_SEED sets.
//
// Where an input ends the program, it lies in fuzz-TARGET.input in the working directory: move it
// to the target's folder in corpus/, where it is run first from then on.
//
// Inputs whose outcome was not seen before are mutated further, so that what is accepted, and every
// way to be refused, becomes a start of its own.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include "fuzz/allocations.h"
#include "fuzz/mutator.h"
#include "fuzz/targets.h"

namespace headrace::fuzz {
namespace {

constexpr int kQuickInputs = 2000;
constexpr std::size_t kMaxStarts = 2000;
// Of CPU time, so that a busy machine changes nothing. An input takes well below 10 ms; sanitizers
// cost tenfold.
constexpr double kMaxSeconds = 5;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Holds the input under way in a file, for the case that the program does not come back from it.
class InputOnDisk {
 public:
  explicit InputOnDisk(std::string_view target)
      : path_(fmt::format("fuzz-{}.input", target)),
        file_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  InputOnDisk(const InputOnDisk&) = delete;
  InputOnDisk& operator=(const InputOnDisk&) = delete;
  ~InputOnDisk() {
    close(file_);
    if (!keep_) {
      unlink(path_.c_str());
    }
  }

  bool put(std::string_view input) {
    return ftruncate(file_, 0) == 0 &&
           pwrite(file_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size());
  }
  const std::string& keep() {
    keep_ = true;
    return path_;
  }

 private:
  std::string path_;
  int file_;
  bool keep_ = false;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_corpus(std::string_view target) {
  const std::filesystem::path folder = std::filesystem::path(HEADRACE_FUZZ_CORPUS) / target;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const std::filesystem::path& path : paths) {
    corpus.push_back(read_file(path));
  }
  return corpus;
}

// An error's message without what the input put into it: its letters, none between the first and
// the last quote.
std::string kind_of(const std::string& message) {
  constexpr std::string_view kQuotes = "'\"";
  const std::size_t open = std::min(message.find_first_of(kQuotes), message.size());
  const std::size_t close = std::max(open, std::min(message.find_last_of(kQuotes), message.size()));
  std::string kind;
  for (const char c : message.substr(0, open) + message.substr(close)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      kind += c;
    }
  }
  kind.resize(std::min<std::size_t>(kind.size(), 96));
  return kind;
}

class Run {
 public:
  Run(const Target& target, std::uint64_t seed)
      : target_(target),
        disk_(target.name),
        mutator_(seed, target.words, target.max_input_bytes),
        committed_(read_corpus(target.name)),
        starts_(committed_) {}

  // False once the test has failed.
  bool committed_inputs() {
    EXPECT_FALSE(committed_.empty());
    return std::all_of(committed_.begin(), committed_.end(), [this](const std::string& input) {
      return one(input);
    });
  }
  // Every other one of a committed input, so that what was found does not crowd them out.
  bool mutation() { return one(mutator_.next(num_inputs_ % 2 == 0 ? committed_ : starts_)); }

  void report() const {
    fmt::print(
        "{}: {} inputs, {} of them accepted, {} kinds of outcome; at most {:.1f} ms and {} KiB\n",
        target_.name,
        num_inputs_,
        num_accepted_,
        kinds_.size(),
        1e3 * max_seconds_,
        max_peak_bytes_ >> 10U);
  }

 private:
  bool one(const std::string& input) {
    ++num_inputs_;
    EXPECT_TRUE(disk_.put(input));
    const double begin = cpu_seconds();
    const PeakMemory memory;
    const Outcome outcome = target_.run(input);
    const std::size_t peak = memory.bytes();
    const double took = cpu_seconds() - begin;
    max_seconds_ = std::max(max_seconds_, took);
    max_peak_bytes_ = std::max(max_peak_bytes_, peak);
    num_accepted_ += outcome.accepted ? 1 : 0;
    EXPECT_LE(took, kMaxSeconds);
    EXPECT_LE(peak, target_.max_peak_bytes);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "input " << num_inputs_ << " is kept in " << disk_.keep();
      return false;
    }
    if (starts_.size() < kMaxStarts && kinds_.insert(kind_of(outcome.message)).second) {
      starts_.push_back(input);
    }
    return true;
  }

  const Target& target_;
  InputOnDisk disk_;
  Mutator mutator_;
  std::vector<std::string> committed_;
  std::vector<std::string> starts_;  // and what came of them
  std::set<std::string> kinds_;
  std::size_t num_inputs_ = 0;
  std::size_t num_accepted_ = 0;
  double max_seconds_ = 0;
  std::size_t max_peak_bytes_ = 0;
};

void run_quick(const Target& target) {
  Run run(target, 1);
  bool good = run.committed_inputs();
  for (int i = 0; good && i < kQuickInputs; ++i) {
    good = run.mutation();
  }
  run.report();
}

// The variable as a number, or what holds without it.
std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void run_long(const Target& target) {
  const std::chrono::seconds duration(setting("HEADRACE_FUZZ_SECONDS", 120));
  const std::uint64_t seed = setting("HEADRACE_FUZZ_SEED", std::random_device{}());
  fmt::print(
      "{}: HEADRACE_FUZZ_SEED={} HEADRACE_FUZZ_SECONDS={}\n", target.name, seed, duration.count());
  std::fflush(stdout);
  Run run(target, seed);
  bool good = run.committed_inputs();
  const auto end = std::chrono::steady_clock::now() + duration;
  while (good && std::chrono::steady_clock::now() < end) {
    good = run.mutation();
  }
  run.report();
}

TEST(Fuzz, ModelFiles) { run_quick(kGgufTarget); }
TEST(Fuzz, ChatTemplates) { run_quick(kChatTemplateTarget); }
TEST(Fuzz, RequestBodies) { run_quick(kRequestTarget); }
TEST(Fuzz, Vocabularies) { run_quick(kVocabularyTarget); }
TEST(Fuzz, TextForTokenizers) { run_quick(kTokenizerTextTarget); }

TEST(SlowFuzz, ModelFiles) { run_long(kGgufTarget); }
TEST(SlowFuzz, ChatTemplates) { run_long(kChatTemplateTarget); }
TEST(SlowFuzz, RequestBodies) { run_long(kRequestTarget); }
TEST(SlowFuzz, Vocabularies) { run_long(kVocabularyTarget); }
TEST(SlowFuzz, TextForTokenizers) { run_long(kTokenizerTextTarget); }

}  // namespace
}  // namespace headrace::fuzz
