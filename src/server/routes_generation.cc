#include <utility>

#include "server/generation_job.h"
#include "server/generation_request.h"
#include "server/routes.h"

namespace headrace {
namespace {

using ParseRequest = Result<GenerationRequest> (*)(const boost::json::object& body, int vocab_size);

enum class Streaming { kAsAsked, kNever, kAlways };

Handler generation_handler(ServerCore& core, ParseRequest parse, Streaming streaming) {
  return [&core, parse, streaming](std::shared_ptr<Exchange> exchange) {
    const std::unique_ptr<ModelRequest> input = read_model_request(core, *exchange);
    if (input == nullptr) {
      return;
    }
    const int vocab_size = input->model->tokenizer().vocab_size();
    Result<GenerationRequest> request = parse(input->body, vocab_size);
    if (!request) {
      return respond_error(*exchange, to_api_error(request.error()));
    }
    if (const Status valid = validate(request->sampling, vocab_size); !valid) {
      return respond_error(*exchange, to_api_error(valid.error()));
    }
    if (request->form == ApiForm::kChat && input->model->served().chat_template == nullptr) {
      return respond_error(
          *exchange,
          bad_request(fmt::format("the model '{}' has no chat template: use /v1/completions",
                                  input->model->served().name),
                      "messages"));
    }
    if (streaming != Streaming::kAsAsked) {
      request->stream = streaming == Streaming::kAlways;
    }
    GenerationJob::start(core, std::move(exchange), input->model, std::move(*request));
  };
}

}  // namespace

void add_generation_routes(Router& router, ServerCore& core) {
  router.add({"POST",
              "/v1/chat/completions",
              Access::kKeyed,
              "Answers a chat, as OpenAI's API does.",
              generation_handler(core, parse_chat_request, Streaming::kAsAsked)});
  router.add({"POST",
              "/v1/completions",
              Access::kKeyed,
              "Continues text, as OpenAI's API does.",
              generation_handler(core, parse_completion_request, Streaming::kAsAsked)});
  router.add({"POST",
              "/generate",
              Access::kKeyed,
              "Continues text, in the form of Text Generation Inference.",
              generation_handler(core, parse_tgi_request, Streaming::kNever)});
  router.add({"POST",
              "/generate_stream",
              Access::kKeyed,
              "The same as a stream of events.",
              generation_handler(core, parse_tgi_request, Streaming::kAlways)});
}

}  // namespace headrace
