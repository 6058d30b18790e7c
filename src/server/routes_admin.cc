#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "base/json_text.h"
#include "engine/engine.h"
#include "server/fields.h"
#include "server/json_body.h"
#include "server/routes.h"

namespace headrace {
namespace {

namespace json = boost::json;

struct BatchingChange {
  std::string batching;
  std::string model;  // empty: all models
};

Error error_in(std::string param, ErrorCode code, std::string message) {
  Error error = make_error(code, "{}", message);
  error.param = std::move(param);
  return error;
}

Result<BatchingChange> parse_batching_change(const json::object& body) {
  FieldReader fields(body);
  std::optional<std::string> batching = fields.text("batching");
  std::string model = fields.text("model").value_or("");
  HR_RETURN_IF_ERROR(fields.status());
  if (!batching) {
    return error_in("batching", ErrorCode::kInvalidArgument, "the field 'batching' is missing");
  }
  return BatchingChange{std::move(*batching), std::move(model)};
}

// The names of the models that changed.
Result<json::array> switch_batching(const ServerCore& core, const BatchingChange& change) {
  json::array models;
  for (const auto& model : core.models.all()) {
    if (change.model.empty() || model->served().name == change.model) {
      HR_RETURN_IF_ERROR(model->served().engine->set_batching(change.batching));
      models.emplace_back(model->served().name);
    }
  }
  if (models.empty()) {
    return error_in("model",
                    ErrorCode::kNotFound,
                    fmt::format("the model '{}' is not served here: see /v1/models", change.model));
  }
  return models;
}

Result<json::object> answer_batching(const ServerCore& core, const std::string& text) {
  HR_ASSIGN_OR_RETURN(const json::object body, parse_json_object(text));
  HR_ASSIGN_OR_RETURN(const BatchingChange change, parse_batching_change(body));
  HR_ASSIGN_OR_RETURN(json::array models, switch_batching(core, change));
  return json::object{{"batching", change.batching}, {"models", std::move(models)}};
}

void admin_batching(const ServerCore& core, Exchange& exchange) {
  if (core.state.load() == ServerState::kLoading) {
    return respond_error(exchange, api_error(503, "the model is still loading"));
  }
  const Result<json::object> answer = answer_batching(core, exchange.request().body);
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
