#include <fmt/format.h>
#include <memory>
#include <optional>

#include "app/command.h"
#include "chat/chat_template.h"
#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace headrace {
namespace {

struct TemplateOptions {
  std::string source;
  std::string messages;
  std::string tools;
  bool no_generation_prompt = false;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  bool json = false;
};

struct Source {
  std::string text;
  std::string bos_token;
  std::string eos_token;
};

Result<boost::json::value> read_json(const std::string& path) {
  HR_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  if (error) {
    return make_error(ErrorCode::kInvalidArgument, "{}: not JSON: {}", path, error.message());
  }
  return value;
}

Result<Source> read_source(const std::string& source) {
  if (source.ends_with(".jinja")) {
    HR_ASSIGN_OR_RETURN(std::string text, read_file(source));
    return Source{std::move(text), "", ""};
  }
  HR_ASSIGN_OR_RETURN(const ResolvedModel resolved, find_model_file(source));
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(resolved.path));
  HR_ASSIGN_OR_RETURN(TokenizerData data, read_tokenizer(file));
  if (data.chat_template.empty()) {
    return make_error(ErrorCode::kNotFound, "{}: the file has no chat template", resolved.path);
  }
  const auto token = [&data](TokenId id) {
    return id < 0 ? std::string() : data.tokens[static_cast<std::size_t>(id)];
  };
  return Source{data.chat_template, token(data.bos_id), token(data.eos_id)};
}

Result<std::string> render(const TemplateOptions& options) {
  HR_ASSIGN_OR_RETURN(Source source, read_source(options.source));
  HR_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::parse(source.text));
  HR_ASSIGN_OR_RETURN(const boost::json::value messages, read_json(options.messages));
  if (!messages.is_array()) {
    return make_error(
        ErrorCode::kInvalidArgument, "{}: must hold a list of messages", options.messages);
  }
  boost::json::value tools;
  if (!options.tools.empty()) {
    HR_ASSIGN_OR_RETURN(tools, read_json(options.tools));
    if (!tools.is_array()) {
      return make_error(
          ErrorCode::kInvalidArgument, "{}: must hold a list of tools", options.tools);
    }
  }
  HR_ASSIGN_OR_RETURN(
      const Rope rope,
      chat_template.render({.messages = messages,
                            .tools = options.tools.empty() ? nullptr : &tools,
                            .add_generation_prompt = !options.no_generation_prompt,
                            .bos_token = options.bos_token.value_or(source.bos_token),
                            .eos_token = options.eos_token.value_or(source.eos_token)}));
  return to_string(rope);
}

int run_template(const TemplateOptions& options) {
  const auto text = render(options);
  if (!text.ok()) {
    return fail(text.error());
  }
  if (options.json) {
    print_json({{"prompt", *text}});
  } else {
    fmt::print("{}", *text);
  }
  return kExitDone;
}

}  // namespace

void add_template_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<TemplateOptions>();
  CLI::App* command =
      app.add_subcommand("template", "the chat template's text for a list of messages");
  command->add_option("MODEL|FILE.jinja", options->source, "a model, or a template by itself")
      ->required();
  command->add_option("--messages", options->messages, "a JSON file with the list of messages")
      ->required();
  command->add_option("--tools", options->tools, "a JSON file with the list of tools");
  command->add_flag("--no-generation-prompt",
                    options->no_generation_prompt,
                    "do not open the assistant's answer");
  command->add_option("--bos-token", options->bos_token, "instead of the model's");
  command->add_option("--eos-token", options->eos_token, "instead of the model's");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return run_template(*options); }; });
}

}  // namespace headrace
