// Which handler answers which method and path, and what is decided before any handler: 404, 405
// with Allow, 401, CORS preflights. Routes are added before the first request, then it is constant;
// dispatch() from any I/O thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace headrace {

// kKeyed: needs an API key where keys are configured. kAdmin: needs an admin key.
enum class Access { kOpen, kKeyed, kAdmin };

struct Route {
  std::string method;  // GET also answers HEAD
  std::string path;    // exact, or ending in "/*": anything below
  Access access = Access::kKeyed;
  std::string summary;  // for the description at /openapi.json
  Handler handler;
};

class Router {
 public:
  Router(std::vector<std::string> api_keys,
         std::vector<std::string> admin_keys,
         std::string cors_origin)
      : api_keys_(std::move(api_keys)),
        admin_keys_(std::move(admin_keys)),
        cors_origin_(std::move(cors_origin)) {}

  void add(Route route) { routes_.push_back(std::move(route)); }
  const std::vector<Route>& routes() const { return routes_; }

  // An exception of a handler is answered with 500.
  void dispatch(const std::shared_ptr<Exchange>& exchange) const;

 private:
  bool authorized(const HttpRequest& request, Access access) const;
  std::string allowed_methods(std::string_view path) const;
  void preflight(Exchange& exchange) const;

  std::vector<Route> routes_;
  std::vector<std::string> api_keys_;
  std::vector<std::string> admin_keys_;
  std::string cors_origin_;
};

// Compares in a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace headrace
