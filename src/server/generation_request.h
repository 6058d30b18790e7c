// What a client asks for, whatever form it was said in: OpenAI's chat and completions, TGI's
// generate. Parsing is pure and decides every 400 that needs no tokenizer; nothing here is changed
// afterwards.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sampling/params.h"

namespace headrace {

inline constexpr int kMaxChoices = 64;      // prompts x n of one HTTP request
inline constexpr int kMaxN = 16;            // choices of one prompt
inline constexpr int kMaxStops = 16;        // stop strings, stop token ids
inline constexpr int kMaxTopLogprobs = 20;  // as OpenAI's chat

// What a chat template gets. The JSON is the client's, with content parts joined to one string.
struct ChatInput {
  boost::json::array messages;
  boost::json::array tools;
  boost::json::array documents;
  boost::json::object template_kwargs;
  bool add_generation_prompt = true;
};

// One prompt: text in which special tokens are read, ids, or a chat.
using PromptInput = std::variant<std::string, std::vector<TokenId>, ChatInput>;

enum class ApiForm { kChat, kCompletions, kTgi };

struct GenerationRequest {
  ApiForm form = ApiForm::kCompletions;
  std::vector<PromptInput> prompts;  // at least one
  SamplingParams sampling;           // of the first choice; choice i adds i to the seed
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  std::optional<int> max_tokens;  // none: to the end of the context
  int min_tokens = 0;
  bool ignore_eos = false;
  int n = 1;
  bool echo = false;
  bool stream = false;
  bool include_usage = false;      // in a stream
  bool details = false;            // TGI: say more than the text
  bool add_special_tokens = true;  // BOS, as the model says; not for chat, whose template writes it
  int priority = 0;
  std::optional<std::int64_t> deadline_ms;
  std::string cache_salt;  // "": the shared cache
  std::vector<std::string> ignored_fields;

  bool wants_logprobs() const { return sampling.num_top_logprobs >= 0; }
};

// vocab_size bounds token ids.
Result<GenerationRequest> parse_chat_request(const boost::json::object& body, int vocab_size);
Result<GenerationRequest> parse_completion_request(const boost::json::object& body, int vocab_size);
// `stream` is the route's: TGI has one for each.
Result<GenerationRequest> parse_tgi_request(const boost::json::object& body, int vocab_size);

}  // namespace headrace
