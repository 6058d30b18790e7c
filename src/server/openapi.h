// The description of the routes at /openapi.json (OpenAPI 3.1). Made from the router's own table,
// so it cannot name a route that is not there. Pure.
#pragma once

#include <string>

#include "server/router.h"

namespace headrace {

std::string openapi_json(const Router& router, const std::string& version);

}  // namespace headrace
