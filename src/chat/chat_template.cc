#include "chat/chat_template.h"

#include <chrono>

#include "chat/interpreter.h"
#include "chat/json.h"
#include "chat/methods.h"
#include "chat/parser.h"

namespace headrace {
namespace {

std::tm computer_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

Error as_error(const jinja::TemplateFailure& failure, int line) {
  Error error{ErrorCode::kInvalidArgument, failure.message(), "messages"};
  if (failure.kind() != jinja::TemplateFailure::Kind::kRaised) {
    error.message = fmt::format("chat template line {}: {}", line, failure.message());
  }
  return error;
}

void set_variables(jinja::Interpreter& in, const RenderInput& input) {
  using jinja::Text;
  using jinja::Value;
  const auto optional_json = [](const boost::json::value* json) {
    return json == nullptr ? Value::none() : jinja::from_json(*json);
  };
  jinja::add_builtin_functions(in);
  in.set_global("bos_token", Value::text(Text(input.bos_token, true)));
  in.set_global("eos_token", Value::text(Text(input.eos_token, true)));
  for (const auto& [name, value] : input.extra) {
    in.set_global(name, jinja::from_json(value));
  }
  in.set_global("messages", jinja::from_json(input.messages));
  in.set_global("tools", optional_json(input.tools));
  in.set_global("documents", optional_json(input.documents));
  in.set_global("add_generation_prompt", Value::boolean(input.add_generation_prompt));
}

Rope as_rope(const jinja::Text& text) {
  Rope rope;
  text.for_each_run([&rope](std::string_view bytes, bool trusted) {
    rope.push_back({std::string(bytes), trusted});
  });
  return rope;
}

}  // namespace

std::string to_string(const Rope& rope) {
  std::string out;
  for (const RopePiece& piece : rope) {
    out += piece.text;
  }
  return out;
}

Result<ChatTemplate> ChatTemplate::parse(const std::string& source) {
  try {
    return ChatTemplate(jinja::parse_template(source));
  } catch (const jinja::TemplateFailure& failure) {
    return as_error(failure, failure.line());
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kExhausted, "there is not enough memory for the chat template");
  }
}

Result<Rope> ChatTemplate::render(const RenderInput& input) const {
  jinja::Interpreter::Settings settings{jinja::Budget(input.limits.steps, input.limits.text_bytes),
                                        input.limits.output_bytes,
                                        input.local_time ? input.local_time : computer_time};
  jinja::Interpreter interpreter(program_, std::move(settings));
  try {
    set_variables(interpreter, input);
    return as_rope(interpreter.render());
  } catch (const jinja::TemplateFailure& failure) {
    return as_error(failure, interpreter.line());
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kExhausted,
                      "there is not enough memory to render the chat template");
  }
}

}  // namespace headrace
