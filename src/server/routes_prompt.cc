#include <optional>
#include <utility>

#include "base/json_text.h"
#include "engine/engine.h"
#include "server/fields.h"
#include "server/parse_chat.h"
#include "server/prompt.h"
#include "server/routes.h"

namespace headrace {
namespace {

namespace json = boost::json;

json::array ids_json(const std::vector<TokenId>& ids) {
  json::array out;
  out.reserve(ids.size());
  for (const TokenId id : ids) {
    out.push_back(id);
  }
  return out;
}

HttpResponse object_response(const json::object& object) {
  return json_response(json_text(object));
}

struct TokenizeRequest {
  PromptInput prompt;
  bool add_special_tokens = true;
  bool return_token_strs = false;
};

Result<TokenizeRequest> parse_tokenize(const json::object& body) {
  FieldReader fields(body);
  TokenizeRequest request;
  if (fields.find("messages") != nullptr) {
    request.prompt = read_chat_input(fields);
  } else if (std::optional<std::string> text = fields.text("prompt")) {
    request.prompt = std::move(*text);
  } else {
    fields.fail("prompt", "is missing (or messages)");
  }
  request.add_special_tokens = fields.boolean("add_special_tokens", true);
  request.return_token_strs = fields.boolean("return_token_strs", false);
  HR_RETURN_IF_ERROR(fields.status());
  return request;
}

void tokenize(ServerCore& core, std::shared_ptr<Exchange> exchange) {
  const std::unique_ptr<ModelRequest> input = read_model_request(core, *exchange);
  if (input == nullptr) {
    return;
  }
  Result<TokenizeRequest> request = parse_tokenize(input->body);
  if (!request) {
    return respond_error(*exchange, to_api_error(request.error()));
  }
  respond_from_pool(
      core,
      std::move(exchange),
      [model = input->model, request = std::move(*request)]() -> Result<HttpResponse> {
        const ServedModel& served = model->served();
        HR_ASSIGN_OR_RETURN(
            const PreparedPrompt prompt,
            prepare_prompt(served, request.prompt, request.add_special_tokens, std::nullopt));
        json::object answer = {{"tokens", ids_json(prompt.tokens)},
                               {"count", prompt.tokens.size()},
                               {"max_model_len", served.engine->max_context()}};
        if (request.return_token_strs) {
          json::array pieces;
          for (const TokenId id : prompt.tokens) {
            pieces.push_back(json::value(served.tokenizer->piece(id)));
          }
          answer["token_strs"] = std::move(pieces);
        }
        return object_response(answer);
      });
}

void detokenize(ServerCore& core, std::shared_ptr<Exchange> exchange) {
  const std::unique_ptr<ModelRequest> input = read_model_request(core, *exchange);
  if (input == nullptr) {
    return;
  }
  FieldReader fields(input->body);
  std::optional<std::vector<TokenId>> ids =
      fields.token_ids("tokens", input->model->tokenizer().vocab_size());
  if (fields.ok() && !ids) {
    fields.fail("tokens", "is missing");
  }
  if (!fields.ok()) {
    return respond_error(*exchange, to_api_error(fields.status().error()));
  }
  respond_from_pool(
      core,
      std::move(exchange),
      [model = input->model, ids = std::move(*ids)]() -> Result<HttpResponse> {
        return object_response({{"prompt", model->tokenizer().decode(ids, SkipSpecial::kNo)}});
      });
}

void apply_template(ServerCore& core, std::shared_ptr<Exchange> exchange) {
  const std::unique_ptr<ModelRequest> input = read_model_request(core, *exchange);
  if (input == nullptr) {
    return;
  }
  FieldReader fields(input->body);
  ChatInput chat = read_chat_input(fields);
  if (!fields.ok()) {
    return respond_error(*exchange, to_api_error(fields.status().error()));
  }
  respond_from_pool(core,
                    std::move(exchange),
                    [model = input->model, chat = std::move(chat)]() -> Result<HttpResponse> {
                      HR_ASSIGN_OR_RETURN(const PreparedPrompt prompt,
                                          prepare_chat(model->served(), chat, std::nullopt));
                      return object_response({{"prompt", prompt.text}});
                    });
}

json::object sampling_json(const GenerationRequest& request, int max_context) {
  const SamplingParams& sampling = request.sampling;
  json::array stop;
  for (const std::string& text : request.stop) {
    stop.push_back(json::value(text));
  }
  return {
      {"n", request.n},
      {"temperature", sampling.temperature},
      {"top_p", sampling.top_p},
      {"top_k", sampling.top_k},
      {"min_p", sampling.min_p},
      {"frequency_penalty", sampling.frequency_penalty},
      {"presence_penalty", sampling.presence_penalty},
      {"repetition_penalty", sampling.repetition_penalty},
      {"seed", static_cast<std::int64_t>(sampling.seed)},
      {"stop", std::move(stop)},
      {"stop_token_ids", ids_json(request.stop_token_ids)},
      {"ignore_eos", request.ignore_eos},
      {"max_tokens", request.max_tokens.value_or(max_context)},
      {"min_tokens", request.min_tokens},
      {"logprobs",
       request.wants_logprobs() ? json::value(sampling.num_top_logprobs) : json::value(nullptr)}};
}

// What the engine would be asked, in the form that vLLM's routers read.
json::object render_json(const ModelEntry& model,
                         const GenerationRequest& request,
                         const PreparedPrompt& prompt,
                         const std::string& id) {
  return {{"request_id", id},
          {"token_ids", ids_json(prompt.tokens)},
          {"features", nullptr},
          {"sampling_params", sampling_json(request, model.served().engine->max_context())},
          {"model", model.served().name},
          {"stream", request.stream},
          {"cache_salt",
           request.cache_salt.empty() ? json::value(nullptr) : json::value(request.cache_salt)},
          {"priority", request.priority}};
}

using ParseRequest = Result<GenerationRequest> (*)(const json::object& body, int vocab_size);

// A chat gives one object, completions a list with one object per prompt.
void render(ServerCore& core, ParseRequest parse, std::shared_ptr<Exchange> exchange) {
  const std::unique_ptr<ModelRequest> input = read_model_request(core, *exchange);
  if (input == nullptr) {
    return;
  }
  Result<GenerationRequest> request = parse(input->body, input->model->tokenizer().vocab_size());
  if (!request) {
    return respond_error(*exchange, to_api_error(request.error()));
  }
  const std::string id = exchange->request().id;
  respond_from_pool(
      core,
      std::move(exchange),
      [model = input->model, request = std::move(*request), id]() -> Result<HttpResponse> {
        json::array rendered;
        for (const PromptInput& prompt_input : request.prompts) {
          HR_ASSIGN_OR_RETURN(
              const PreparedPrompt prompt,
              prepare_prompt(
                  model->served(), prompt_input, request.add_special_tokens, std::nullopt));
          rendered.push_back(render_json(*model, request, prompt, id));
        }
        if (request.form == ApiForm::kChat) {
          return object_response(rendered.front().get_object());
        }
        return json_response(json_text(rendered));
      });
}

}  // namespace

void add_prompt_routes(Router& router, ServerCore& core) {
  router.add(
      {"POST",
       "/tokenize",
       Access::kKeyed,
       "Text or a chat to token ids.",
       [&core](std::shared_ptr<Exchange> exchange) { tokenize(core, std::move(exchange)); }});
  router.add(
      {"POST",
       "/detokenize",
       Access::kKeyed,
       "Token ids to text.",
       [&core](std::shared_ptr<Exchange> exchange) { detokenize(core, std::move(exchange)); }});
  router.add(
      {"POST",
       "/apply-template",
       Access::kKeyed,
       "The chat template's text for a chat.",
       [&core](std::shared_ptr<Exchange> exchange) { apply_template(core, std::move(exchange)); }});
  router.add({"POST",
              "/v1/chat/completions/render",
              Access::kKeyed,
              "What a chat completion would send to the engine.",
              [&core](std::shared_ptr<Exchange> exchange) {
                render(core, parse_chat_request, std::move(exchange));
              }});
  router.add({"POST",
              "/v1/completions/render",
              Access::kKeyed,
              "What a completion would send to the engine, per prompt.",
              [&core](std::shared_ptr<Exchange> exchange) {
                render(core, parse_completion_request, std::move(exchange));
              }});
}

}  // namespace headrace
