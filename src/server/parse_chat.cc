#include "server/parse_chat.h"

#include <array>
#include <string_view>
#include <utility>

#include "server/parse_sampling.h"

namespace headrace {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 5> kRoles = {
    "system", "developer", "user", "assistant", "tool"};

Error message_error(std::size_t idx,
                    std::string_view what,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  Error error = make_error(code, "messages[{}]{}", idx, what);
  error.param = fmt::format("messages[{}]", idx);
  return error;
}

// Text parts, joined; anything else is refused by name.
Result<json::string> join_parts(std::size_t idx, const json::array& parts) {
  json::string text;
  bool first = true;
  for (const json::value& part : parts) {
    const json::object* object = part.if_object();
    const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
    if (type == nullptr || !type->is_string()) {
      return message_error(idx, ".content: each part must be an object with a type");
    }
    if (*type != json::value("text")) {
      return message_error(
          idx,
          fmt::format(".content: parts of type '{}' are not supported by this server",
                      std::string_view(type->get_string().data(), type->get_string().size())),
          ErrorCode::kUnsupported);
    }
    const json::value* words = object->if_contains("text");
    if (words == nullptr || !words->is_string()) {
      return message_error(idx, ".content: a text part needs a string 'text'");
    }
    if (!first) {
      text.push_back('\n');
    }
    first = false;
    text.append(words->get_string());
  }
  return text;
}

Status normalize_content(std::size_t idx, std::string_view role, json::object& message) {
  json::value* content = message.if_contains("content");
  const bool absent = content == nullptr || content->is_null();
  if (absent) {
    if (role == "assistant" && message.contains("tool_calls")) {
      return {};
    }
    return message_error(idx, ".content: is missing");
  }
  if (content->is_string()) {
    return {};
  }
  if (!content->is_array()) {
    return message_error(idx, ".content: must be a string or a list of parts");
  }
  HR_ASSIGN_OR_RETURN(*content, join_parts(idx, content->get_array()));
  return {};
}

Result<json::object> normalize_message(std::size_t idx, const json::value& value) {
  if (!value.is_object()) {
    return message_error(idx, fmt::format(": must be an object, not {}", kind_name(value)));
  }
  json::object message = value.get_object();
  json::value* role = message.if_contains("role");
  if (role == nullptr || !role->is_string()) {
    return message_error(idx, ".role: must be a string");
  }
  const std::string name(role->get_string());
  if (std::find(kRoles.begin(), kRoles.end(), name) == kRoles.end()) {
    return message_error(idx, ".role: must be system, developer, user, assistant or tool");
  }
  if (name == "developer") {
    *role = "system";
  }
  HR_RETURN_IF_ERROR(normalize_content(idx, name, message));
  return message;
}

void read_messages(FieldReader& fields, ChatInput& input) {
  const json::array* messages = fields.array("messages");
  if (messages == nullptr) {
    return fields.fail("messages", "is missing");
  }
  if (messages->empty()) {
    return fields.fail("messages", "must not be empty");
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    Result<json::object> message = normalize_message(i, (*messages)[i]);
    if (!message) {
      return fields.fail_with(std::move(message.error()));
    }
    input.messages.push_back(std::move(*message));
  }
}

void read_tools(FieldReader& fields, ChatInput& input) {
  const json::array* tools = fields.array("tools");
  if (tools == nullptr) {
    return;
  }
  for (const json::value& tool : *tools) {
    const json::object* object = tool.if_object();
    const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
    if (type == nullptr || *type != json::value("function")) {
      return fields.fail(
          "tools", "only tools of type 'function' are supported", ErrorCode::kUnsupported);
    }
    const json::value* function = object->if_contains("function");
    if (function == nullptr || !function->is_object()) {
      return fields.fail("tools", "a tool needs an object 'function'");
    }
  }
  input.tools = *tools;
}

// A call of a tool would have to come back in the form of tool_calls; without a parser for it the
// model may only be shown the tools, not asked to call them.
void refuse_tool_calls(FieldReader& fields, const ChatInput& input) {
  const json::value* choice = fields.find("tool_choice");
  const bool none = choice != nullptr && *choice == json::value("none");
  const bool automatic = choice == nullptr || *choice == json::value("auto");
  if (none || (automatic && input.tools.empty())) {
    return;
  }
  if (automatic) {
    return fields.fail(
        "tools",
        "tool calls are not supported by this server; \"tool_choice\": \"none\" shows the "
        "tools to the model without calls",
        ErrorCode::kUnsupported);
  }
  fields.fail("tool_choice",
              "tool calls are not supported by this server: use \"none\"",
              ErrorCode::kUnsupported);
}

void read_chat_logprobs(FieldReader& fields, GenerationRequest& request) {
  const bool logprobs = fields.boolean("logprobs", false);
  const std::optional<std::int64_t> top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (top && !logprobs) {
    return fields.fail("top_logprobs", "needs \"logprobs\": true");
  }
  if (logprobs) {
    request.sampling.num_top_logprobs = static_cast<int>(top.value_or(0));
  }
}

}  // namespace

ChatInput read_chat_input(FieldReader& fields) {
  ChatInput input;
  read_messages(fields, input);
  read_tools(fields, input);
  if (const json::array* documents = fields.array("documents")) {
    input.documents = *documents;
  }
  if (const json::object* kwargs = fields.object("chat_template_kwargs")) {
    input.template_kwargs = *kwargs;
  }
  input.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  if (fields.boolean("continue_final_message", false)) {
    fields.fail(
        "continue_final_message", "is not supported by this server", ErrorCode::kUnsupported);
  }
  if (fields.find("chat_template") != nullptr) {
    fields.fail("chat_template",
                "is not supported by this server: the model's own template is used",
                ErrorCode::kUnsupported);
  }
  return input;
}

Result<GenerationRequest> parse_chat_request(const json::object& body, int vocab_size) {
  FieldReader fields(body);
  GenerationRequest request;
  request.form = ApiForm::kChat;
  fields.text("model");
  ChatInput input = read_chat_input(fields);
  refuse_tool_calls(fields, input);
  request.prompts.emplace_back(std::move(input));
  constexpr std::int64_t kMaxInt = 2147483647;
  // The newer name wins; the older one is still checked.
  const std::optional<std::int64_t> old_limit = fields.integer("max_tokens", 0, kMaxInt);
  const std::optional<std::int64_t> new_limit = fields.integer("max_completion_tokens", 0, kMaxInt);
  if (const std::optional<std::int64_t> limit = new_limit ? new_limit : old_limit) {
    request.max_tokens = static_cast<int>(*limit);
  }
  read_sampling_fields(fields, vocab_size, request);
  read_chat_logprobs(fields, request);
  request.echo = fields.boolean("echo", false);
  if (request.echo) {
    fields.fail("echo", "is only supported for completions", ErrorCode::kUnsupported);
  }
  refuse_unbuilt_forms(fields, body);
  HR_RETURN_IF_ERROR(fields.status());
  request.ignored_fields = fields.unknown();
  return request;
}

}  // namespace headrace
