// From what a client wrote to token ids: the chat template and the tokenizer. Pure, any thread; may
// take long, so it runs on the preparing threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/generation_request.h"
#include "server/server.h"

namespace headrace {

struct PreparedPrompt {
  std::vector<TokenId> tokens;
  std::string text;  // as the model reads it
};

// The chat template's text and ids. kInvalidArgument where the model has no template or the
// template refuses, and where the text cannot be as few tokens as max_tokens: that is seen before
// it is encoded. Text that might fit is encoded, and its tokens may still be too many.
Result<PreparedPrompt> prepare_chat(const ServedModel& model,
                                    const ChatInput& input,
                                    std::optional<int> max_tokens);

// Any prompt. Special tokens in plain text are read, as completions do; ids stand as they are.
Result<PreparedPrompt> prepare_prompt(const ServedModel& model,
                                      const PromptInput& input,
                                      bool add_special_tokens,
                                      std::optional<int> max_tokens);

}  // namespace headrace
