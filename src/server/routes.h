// The routes of the server, grouped as in the files routes_*.cc.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <memory>

#include "server/core.h"
#include "server/router.h"

namespace headrace {

// Everything below; `router` and `core` outlive each other's use.
void add_all_routes(Router& router, ServerCore& core);

void add_generation_routes(Router& router, ServerCore& core);  // chat, completions, generate
void add_prompt_routes(Router& router,
                       ServerCore& core);                 // tokenize, detokenize, templates, render
void add_admin_routes(Router& router, ServerCore& core);  // none without admin keys
void add_info_routes(Router& router, ServerCore& core);   // health, models, metrics, version, page

// The body as an object and the model it names. Answers the exchange and returns null where that
// fails (400, 404, 503).
struct ModelRequest {
  boost::json::object body;
  std::shared_ptr<ModelEntry> model;
};
std::unique_ptr<ModelRequest> read_model_request(ServerCore& core, Exchange& exchange);

// Answers with the error, and says so in the log.
void respond_error(Exchange& exchange, const ApiError& error);

// Runs `work` on the preparing threads and answers with its result.
void respond_from_pool(ServerCore& core,
                       std::shared_ptr<Exchange> exchange,
                       std::function<Result<HttpResponse>()> work);

}  // namespace headrace
