// What Python's Jinja2 with transformers' settings made of templates
// (scripts/golden/make_template_vectors.py), byte for byte. HEADRACE_TEMPLATE_VECTORS names a
// folder with more such files.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "chat/chat_template.h"

namespace headrace {
namespace {

namespace json = boost::json;

std::tm fixed_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 3;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

json::value read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

const json::value* optional(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::string> render(const std::string& source,
                           const json::object& file,
                           const json::object& one) {
  HR_ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::parse(source));
  const json::value no_messages = json::array();
  const json::value* messages = optional(one, "messages");
  RenderInput input{.messages = messages != nullptr ? *messages : no_messages};
  input.tools = optional(one, "tools");
  input.documents = optional(one, "documents");
  const json::value* generate = one.if_contains("add_generation_prompt");
  input.add_generation_prompt = generate == nullptr || generate->as_bool();
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  if (const json::value* kwargs = optional(file, "kwargs")) {
    input.extra = kwargs->as_object();
  }
  if (const json::value* kwargs = optional(one, "kwargs")) {
    input.extra = kwargs->as_object();
  }
  input.local_time = fixed_time;
  HR_ASSIGN_OR_RETURN(const Rope rope, chat.render(input));
  return to_string(rope);
}

// Empty: equal. Else what differs.
std::string difference(const std::string& source,
                       const json::object& file,
                       const json::object& one) {
  const Result<std::string> got = render(source, file, one);
  if (const json::value* wanted = one.if_contains("output")) {
    if (!got.ok()) {
      return "failed: " + got.error().message + "\n  wanted: " + std::string(wanted->as_string());
    }
    if (*got == std::string_view(wanted->as_string())) {
      return {};
    }
    return "got:    " + *got + "\n  wanted: " + std::string(wanted->as_string());
  }
  const std::string message(one.at("error").as_string());
  if (got.ok()) {
    return "rendered: " + *got + "\n  wanted the error: " + message;
  }
  const json::value* raised = one.if_contains("raised");
  if (raised != nullptr && raised->as_bool() && got.error().message != message) {
    return "raised: " + got.error().message + "\n  wanted: " + message;
  }
  return {};
}

void check_file(const std::filesystem::path& path) {
  const json::value document = read_json(path);
  const json::object& file = document.as_object();
  int differing = 0;
  for (const json::value& value : file.at("cases").as_array()) {
    const json::object& one = value.as_object();
    const json::value* own = one.if_contains("template");
    const std::string source((own != nullptr ? *own : file.at("template")).as_string());
    const std::string found = difference(source, file, one);
    if (found.empty()) {
      continue;
    }
    const std::string name = own != nullptr ? source : std::string(one.at("name").as_string());
    if (++differing <= 40) {
      ADD_FAILURE() << path.filename().string() << ": " << name << "\n  " << found;
    }
  }
  EXPECT_EQ(differing, 0) << path;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

const std::filesystem::path kData = std::filesystem::path(HEADRACE_TEST_DATA) / "chat";

TEST(TemplateVectors, LanguageEqualsPythonJinja) { check_file(kData / "language.json"); }

TEST(TemplateVectors, SmolLm2EqualsPythonJinja) { check_file(kData / "smollm2.json"); }

TEST(TemplateVectors, Qwen25CoderEqualsPythonJinja) { check_file(kData / "qwen2.5-coder.json"); }

TEST(TemplateVectors, FolderOfTheCallerEqualsPythonJinja) {
  const char* folder = std::getenv("HEADRACE_TEMPLATE_VECTORS");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr) {
    GTEST_SKIP() << "HEADRACE_TEMPLATE_VECTORS is not set";
  }
  for (const auto& path : files_in(folder)) {
    check_file(path);
  }
}

}  // namespace
}  // namespace headrace
