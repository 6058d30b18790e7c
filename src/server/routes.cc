#include "server/routes.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "server/fields.h"
#include "server/json_body.h"

namespace headrace {

namespace asio = boost::asio;

void add_all_routes(Router& router, ServerCore& core) {
  add_generation_routes(router, core);
  add_prompt_routes(router, core);
  add_admin_routes(router, core);
  add_info_routes(router, core);
}

void respond_error(Exchange& exchange, const ApiError& error) {
  exchange.log().error = error.message;
  exchange.respond(error_response(error));
}

std::unique_ptr<ModelRequest> read_model_request(ServerCore& core, Exchange& exchange) {
  Result<boost::json::object> body = parse_json_object(exchange.request().body);
  if (!body) {
    respond_error(exchange, to_api_error(body.error()));
    return nullptr;
  }
  if (core.state.load() == ServerState::kLoading) {
    respond_error(exchange, api_error(503, "the model is still loading"));
    return nullptr;
  }
  FieldReader fields(*body);
  const std::string name = fields.text("model").value_or("");
  if (!fields.ok()) {
    respond_error(exchange, to_api_error(fields.status().error()));
    return nullptr;
  }
  std::shared_ptr<ModelEntry> model = core.models.find(name);
  if (model == nullptr) {
    ApiError error =
        api_error(404, fmt::format("the model '{}' is not served here: see /v1/models", name));
    error.param = "model";
    error.code = "model_not_found";
    respond_error(exchange, error);
    return nullptr;
  }
  return std::make_unique<ModelRequest>(ModelRequest{std::move(*body), std::move(model)});
}

void respond_from_pool(ServerCore& core,
                       std::shared_ptr<Exchange> exchange,
                       std::function<Result<HttpResponse>()> work) {
  exchange->when_gone([keep = exchange] { static_cast<void>(keep); });
  asio::post(core.pool, [exchange = std::move(exchange), work = std::move(work)] {
    Result<HttpResponse> result = make_error(ErrorCode::kInternal, "no answer was made");
    try {
      result = work();
    } catch (const std::exception& e) {
      result = make_error(ErrorCode::kInternal, "the server failed: {}", e.what());
    }
    const Strand executor = exchange->executor();
    auto shared = std::make_shared<Result<HttpResponse>>(std::move(result));
    asio::post(executor, [exchange, shared] {
      if (*shared) {
        exchange->respond(std::move(**shared));
      } else {
        respond_error(*exchange, to_api_error(shared->error()));
      }
    });
  });
}

}  // namespace headrace
