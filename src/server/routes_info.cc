#include <utility>

#include "base/json_text.h"
#include "engine/engine.h"
#include "metrics/metrics.h"
#include "server/openapi.h"
#include "server/page.h"
#include "server/routes.h"

namespace headrace {
namespace {

namespace json = boost::json;

void respond_object(Exchange& exchange, const json::object& object) {
  exchange.respond(json_response(json_text(object)));
}

void ready(ServerCore& core, Exchange& exchange) {
  switch (core.state.load()) {
    case ServerState::kReady:
      return respond_object(exchange, {{"status", "ready"}});
    case ServerState::kLoading:
      return respond_error(exchange, api_error(503, "loading"));
    case ServerState::kDraining:
      return respond_error(exchange, api_error(503, "draining"));
  }
}

json::object model_json(const ModelEntry& model) {
  return {{"id", model.served().name},
          {"object", "model"},
          {"created", model.created_s()},
          {"owned_by", "headrace"},
          {"max_model_len", model.served().engine->max_context()}};
}

void list_models(ServerCore& core, Exchange& exchange) {
  json::array data;
  for (const auto& model : core.models.all()) {
    data.push_back(model_json(*model));
  }
  respond_object(exchange, {{"object", "list"}, {"data", std::move(data)}});
}

void one_model(ServerCore& core, Exchange& exchange) {
  const std::string name = exchange.request().path.substr(std::string_view("/v1/models/").size());
  const std::shared_ptr<ModelEntry> model = core.models.find(name);
  if (model == nullptr) {
    ApiError error =
        api_error(404, fmt::format("the model '{}' is not served here: see /v1/models", name));
    error.param = "model";
    error.code = "model_not_found";
    return respond_error(exchange, error);
  }
  respond_object(exchange, model_json(*model));
}

void metrics(ServerCore& core, Exchange& exchange) {
  const auto models = core.models.all();
  std::vector<const Metrics*> all;
  for (const auto& model : models) {
    if (model->served().metrics) {
      all.push_back(model->served().metrics.get());
    }
  }
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = Metrics::text_of(all);
  exchange.respond(std::move(response));
}

void page(Exchange& exchange) {
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.body = std::string(chat_page());
  response.headers = {{"Content-Security-Policy",
                       "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
                       "style-src 'unsafe-inline'"},
                      {"X-Content-Type-Options", "nosniff"}};
  exchange.respond(std::move(response));
}

}  // namespace

void add_info_routes(Router& router, ServerCore& core) {
  const auto add = [&router](const char* path, Access access, const char* summary, auto handler) {
    router.add({"GET", path, access, summary, [handler](const std::shared_ptr<Exchange>& exchange) {
                  handler(*exchange);
                }});
  };
  add("/health/live", Access::kOpen, "The process answers.", [](Exchange& exchange) {
    respond_object(exchange, {{"status", "live"}});
  });
  add("/health/ready",
      Access::kOpen,
      "Takes work; the reason if not.",
      [&core](Exchange& exchange) { ready(core, exchange); });
  add("/health", Access::kOpen, "The same as /health/ready.", [&core](Exchange& exchange) {
    ready(core, exchange);
  });
  add("/v1/models", Access::kKeyed, "The models served here.", [&core](Exchange& exchange) {
    list_models(core, exchange);
  });
  add("/v1/models/*", Access::kKeyed, "One model.", [&core](Exchange& exchange) {
    one_model(core, exchange);
  });
  add("/metrics",
      Access::kKeyed,
      "Counters and latencies in Prometheus text.",
      [&core](Exchange& exchange) { metrics(core, exchange); });
  add("/version", Access::kKeyed, "The version of this program.", [&core](Exchange& exchange) {
    respond_object(exchange, {{"version", core.options.version}});
  });
  add("/openapi.json", Access::kKeyed, "This description.", [&core, &router](Exchange& exchange) {
    exchange.respond(json_response(openapi_json(router, core.options.version)));
  });
  add("/", Access::kOpen, "A page to chat with the model.", [](Exchange& exchange) {
    page(exchange);
  });
}

}  // namespace headrace
