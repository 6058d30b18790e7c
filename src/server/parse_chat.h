// Chat messages as clients send them. Pure.
#pragma once

#include "server/fields.h"
#include "server/generation_request.h"

namespace headrace {

// messages, tools, documents, chat_template_kwargs, add_generation_prompt: for chat completions and
// for the routes that only show a prompt. Content parts of text are joined by newlines; the role
// developer becomes system.
ChatInput read_chat_input(FieldReader& fields);

}  // namespace headrace
