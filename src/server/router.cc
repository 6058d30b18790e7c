#include "server/router.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace headrace {
namespace {

bool matches(const Route& route, std::string_view path) {
  const std::string_view pattern = route.path;
  if (!pattern.ends_with("/*")) {
    return pattern == path;
  }
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
  return path.starts_with(prefix) && path.size() > prefix.size();
}

// Browsers' clients add headers of their own; whoever may call at all may send what it wants. None
// where it is no list of plain names.
std::string plain_names(std::string_view list) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ";
  const bool plain =
      list.size() <= 1000 && list.find_first_not_of(kAllowed) == std::string_view::npos;
  return plain ? std::string(list) : std::string();
}

void answer_error(Exchange& exchange, const ApiError& error) {
  exchange.log().error = error.message;
  exchange.respond(error_response(error));
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

bool Router::authorized(const HttpRequest& request, Access access) const {
  if (access == Access::kOpen || (access == Access::kKeyed && api_keys_.empty())) {
    return true;
  }
  const std::vector<std::string>& keys = access == Access::kAdmin ? admin_keys_ : api_keys_;
  std::string_view given = request.authorization;
  constexpr std::string_view kScheme = "bearer ";  // in either case, unlike the key
  const std::string_view scheme = given.substr(0, kScheme.size());
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  if (!std::equal(scheme.begin(), scheme.end(), kScheme.begin(), kScheme.end(), same)) {
    return false;
  }
  given.remove_prefix(kScheme.size());
  bool found = false;
  for (const std::string& key : keys) {  // all are looked at, whichever fits
    found = equal_in_constant_time(given, key) || found;
  }
  return found;
}

std::string Router::allowed_methods(std::string_view path) const {
  std::string methods;
  for (const Route& route : routes_) {
    if (matches(route, path)) {
      methods += methods.empty() ? "" : ", ";
      methods += route.method == "GET" ? "GET, HEAD" : route.method;
    }
  }
  if (!methods.empty() && !cors_origin_.empty()) {
    methods += ", OPTIONS";
  }
  return methods;
}

void Router::preflight(Exchange& exchange) const {
  std::string headers = plain_names(exchange.request().wanted_headers);
  if (headers.empty()) {
    headers = "authorization, content-type, x-request-id";
  }
  HttpResponse response;
  response.status = 204;
  response.headers = {{"Access-Control-Allow-Methods", allowed_methods(exchange.request().path)},
                      {"Access-Control-Allow-Headers", std::move(headers)},
                      {"Access-Control-Max-Age", "600"}};
  exchange.respond(std::move(response));
}

void Router::dispatch(const std::shared_ptr<Exchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const std::string allowed = allowed_methods(request.path);
  if (allowed.empty()) {
    return answer_error(*exchange,
                        api_error(404,
                                  fmt::format("there is no {} here: /openapi.json lists the routes",
                                              request.path.substr(0, 200))));
  }
  if (request.method == "OPTIONS" && !cors_origin_.empty()) {
    return preflight(*exchange);
  }
  const std::string_view method =
      request.method == "HEAD" ? std::string_view("GET") : request.method;
  for (const Route& route : routes_) {
    if (route.method != method || !matches(route, request.path)) {
      continue;
    }
    if (!authorized(request, route.access)) {
      const std::string_view kind = route.access == Access::kAdmin ? "admin" : "API";
      return answer_error(
          *exchange,
          api_error(401, fmt::format("a valid {} key is needed: Authorization: Bearer KEY", kind)));
    }
    try {
      route.handler(exchange);
    } catch (const std::exception& e) {
      answer_error(*exchange, api_error(500, fmt::format("the server failed: {}", e.what())));
    }
    return;
  }
  HttpResponse response = error_response(
      api_error(405, fmt::format("{} is not allowed for {}", request.method, request.path)));
  response.headers.emplace_back("Allow", allowed);
  exchange->respond(std::move(response));
}

}  // namespace headrace
