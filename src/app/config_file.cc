#include "app/config_file.h"

#include <fmt/format.h>
#include <optional>
#include <toml++/toml.h>

#include "app/command.h"

namespace headrace {
namespace {

std::optional<std::string> as_argument(const toml::node& value) {
  if (const auto text = value.value_exact<std::string>()) {
    return *text;
  }
  if (const auto number = value.value_exact<std::int64_t>()) {
    return fmt::format("{}", *number);
  }
  if (const auto number = value.value_exact<double>()) {
    return fmt::format("{}", *number);
  }
  if (const auto flag = value.value_exact<bool>()) {
    return *flag ? "true" : "false";
  }
  return std::nullopt;
}

Status apply(CLI::App& command,
             const std::string& path,
             std::string_view key,
             const toml::node& value) {
  const bool is_model = key == "model";
  CLI::Option* option = command.get_option_no_throw(is_model ? "MODEL" : fmt::format("--{}", key));
  if (option == nullptr || key == "config" || key == "help") {
    return make_error(
        ErrorCode::kInvalidArgument, "{}: '{}' is no flag of {}", path, key, command.get_name());
  }
  if (option->count() > 0) {
    return {};
  }
  const std::optional<std::string> argument = as_argument(value);
  if (!argument) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: '{}' must be a text, a number or a truth value",
                      path,
                      key);
  }
  try {
    option->add_result(*argument);
    option->run_callback();
  } catch (const CLI::Error& error) {
    return make_error(ErrorCode::kInvalidArgument, "{}: '{}': {}", path, key, error.what());
  }
  return {};
}

}  // namespace

Status apply_config_file(CLI::App& command, const std::string& path) {
  toml::table table;
  try {
    HR_ASSIGN_OR_RETURN(const std::string text, read_file(path));
    table = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}:{}: {}",
                      path,
                      error.source().begin.line,
                      error.description());
  }
  for (const auto& [key, value] : table) {
    HR_RETURN_IF_ERROR(apply(command, path, key.str(), value));
  }
  return {};
}

}  // namespace headrace
