// The three forms behind make_answer_format(). See answer.h.
#pragma once

#include "server/answer.h"

namespace headrace {

std::unique_ptr<AnswerFormat> make_chat_format(AnswerContext context);
std::unique_ptr<AnswerFormat> make_completion_format(AnswerContext context);
std::unique_ptr<AnswerFormat> make_tgi_format(AnswerContext context);

}  // namespace headrace
