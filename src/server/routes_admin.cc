#include <utility>

#include "base/json_text.h"
#include "engine/engine.h"
#include "server/fields.h"
#include "server/json_body.h"
#include "server/routes.h"

namespace headrace {
namespace {

namespace json = boost::json;

// Of the model that the body names, or of all.
Result<json::object> switch_batching(const ServerCore& core, const json::object& body) {
  FieldReader fields(body);
  const std::optional<std::string> batching = fields.text("batching");
  const std::string name = fields.text("model").value_or("");
  HR_RETURN_IF_ERROR(fields.status());
  if (!batching) {
    Error error = make_error(ErrorCode::kInvalidArgument, "the field 'batching' is missing");
    error.param = "batching";
    return error;
  }
  json::array models;
  for (const auto& model : core.models.all()) {
    if (name.empty() || model->served().name == name) {
      HR_RETURN_IF_ERROR(model->served().engine->set_batching(*batching));
      models.emplace_back(model->served().name);
    }
  }
  if (models.empty()) {
    Error error =
        make_error(ErrorCode::kNotFound, "the model '{}' is not served here: see /v1/models", name);
    error.param = "model";
    return error;
  }
  return json::object{{"batching", *batching}, {"models", std::move(models)}};
}

void admin_batching(const ServerCore& core, Exchange& exchange) {
  if (core.state.load() == ServerState::kLoading) {
    return respond_error(exchange, api_error(503, "the model is still loading"));
  }
  const Result<json::object> body = parse_json_object(exchange.request().body);
  if (!body) {
    return respond_error(exchange, to_api_error(body.error()));
  }
  const Result<json::object> answer = switch_batching(core, *body);
  if (!answer) {
    return respond_error(exchange, to_api_error(answer.error()));
  }
  exchange.respond(json_response(json_text(*answer)));
}

}  // namespace

void add_admin_routes(Router& router, ServerCore& core) {
  if (core.options.admin_keys.empty()) {
    return;
  }
  router.add(
      {"POST",
       "/admin/batching",
       Access::kAdmin,
       "Batches as static, dynamic or continuous from the next step on.",
       [&core](const std::shared_ptr<Exchange>& exchange) { admin_batching(core, *exchange); }});
}

}  // namespace headrace
