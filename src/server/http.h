// One HTTP request and its answer, as the handlers see them: no sockets, no parser. An Exchange
// lives on its connection's executor; every call but request() is made there. Exactly one of
// respond() and start_stream()...finish() answers it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/api_error.h"
#include "server/request_log.h"

namespace headrace {

struct HttpRequest {
  std::string id;      // x-request-id, the client's or made here
  std::string method;  // upper case
  std::string path;    // without the query
  std::string authorization;
  std::string content_type;
  std::string wanted_headers;  // a preflight's Access-Control-Request-Headers
  std::string body;
  TimePoint arrival{};  // of its first byte
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

HttpResponse json_response(std::string body);
HttpResponse error_response(const ApiError& error);

// What a connection does is done here, one thing at a time.
using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  virtual Strand executor() = 0;
  // What the log says of this request; handlers fill in what they know.
  virtual RequestLog& log() = 0;

  virtual void respond(HttpResponse response) = 0;

  // A stream: the head goes out with the first write. One write at a time; `done` is called when
  // the socket took it, and never if the client is gone.
  virtual void start_stream(HttpResponse head) = 0;
  virtual void write(std::string data, std::function<void()> done) = 0;
  virtual void finish(std::string data) = 0;

  // Called once if the client goes away before the answer is complete. What it holds is kept until
  // then or until the answer is complete.
  virtual void when_gone(std::function<void()> gone) = 0;
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace headrace
