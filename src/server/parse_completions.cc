#include <utility>

#include "server/fields.h"
#include "server/generation_request.h"
#include "server/parse_sampling.h"

namespace headrace {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMaxInt = 2147483647;

void add_text(FieldReader& fields, const json::value& value, GenerationRequest& request) {
  if (value.get_string().empty()) {
    return fields.fail("prompt", "must not be empty");
  }
  request.prompts.emplace_back(std::string(value.get_string()));
}

void add_ids(FieldReader& fields,
             const json::array& list,
             int vocab_size,
             GenerationRequest& request) {
  Result<std::vector<TokenId>> ids = to_token_ids(list, vocab_size);
  if (!ids) {
    return fields.fail("prompt", ids.error().message);
  }
  if (ids->empty()) {
    return fields.fail("prompt", "must not be empty");
  }
  request.prompts.emplace_back(std::move(*ids));
}

// A string, a list of strings, a list of ids, or a list of lists of ids.
void read_prompt(FieldReader& fields, int vocab_size, GenerationRequest& request) {
  const json::value* prompt = fields.find("prompt");
  if (prompt == nullptr) {
    return fields.fail("prompt", "is missing");
  }
  if (prompt->is_string()) {
    return add_text(fields, *prompt, request);
  }
  const json::array* list = prompt->if_array();
  if (list == nullptr) {
    return fields.fail("prompt",
                       fmt::format("must be a string or a list, not {}", kind_name(*prompt)));
  }
  if (list->empty()) {
    return fields.fail("prompt", "must not be empty");
  }
  if (list->front().is_number()) {
    return add_ids(fields, *list, vocab_size, request);
  }
  if (list->size() > kMaxChoices) {
    return fields.fail("prompt", fmt::format("at most {} prompts are allowed", kMaxChoices));
  }
  const bool texts = list->front().is_string();
  for (const json::value& item : *list) {
    if (texts && item.is_string()) {
      add_text(fields, item, request);
    } else if (!texts && item.is_array()) {
      add_ids(fields, item.get_array(), vocab_size, request);
    } else {
      return fields.fail(
          "prompt", "a list holds strings, or token ids, or lists of token ids, not a mixture");
    }
  }
}

}  // namespace

Result<GenerationRequest> parse_completion_request(const json::object& body, int vocab_size) {
  FieldReader fields(body);
  GenerationRequest request;
  request.form = ApiForm::kCompletions;
  fields.text("model");
  read_prompt(fields, vocab_size, request);
  request.max_tokens = static_cast<int>(fields.integer("max_tokens", 0, kMaxInt).value_or(16));
  read_sampling_fields(fields, vocab_size, request);
  request.echo = fields.boolean("echo", false);
  request.add_special_tokens = fields.boolean("add_special_tokens", true);
  if (const auto logprobs = fields.integer("logprobs", 0, kMaxTopLogprobs)) {
    request.sampling.num_top_logprobs = static_cast<int>(*logprobs);
  }
  if (const auto best_of = fields.integer("best_of", 1, kMaxN); best_of && *best_of != request.n) {
    fields.fail(
        "best_of", "is not supported by this server unless it equals n", ErrorCode::kUnsupported);
  }
  if (static_cast<int>(request.prompts.size()) * request.n > kMaxChoices) {
    fields.fail("n", fmt::format("prompts times n must not be more than {}", kMaxChoices));
  }
  refuse_unbuilt_forms(fields, body);
  HR_RETURN_IF_ERROR(fields.status());
  request.ignored_fields = fields.unknown();
  return request;
}

}  // namespace headrace
