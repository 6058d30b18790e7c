// The HTTP server: owns the listener, the connections, the I/O threads and the threads that render
// and tokenize. It never blocks an I/O thread on an engine; the engines are the app's and outlive
// the server.
//
// Life: create() binds the port and answers health and 503 at once; set_models() makes it ready;
// begin_drain() lets what runs finish and refuses the rest with 503; stop() ends it. All methods
// may be called from any thread; stop() once. Errors of create(): kInvalidArgument (host, port),
// kUnavailable (the port is taken).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/request_log.h"
#include "tokenizer/tokenizer.h"

namespace headrace {

class ChatTemplate;
class Engine;
class Metrics;

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address
  int port = 8080;                 // 0: any free one
  std::uint64_t max_body_bytes = std::uint64_t{16} << 20U;
  int max_connections = 1024;                      // one more is answered 503
  std::string cors_origin;                         // "" : no CORS; "*" or an origin
  std::vector<std::string> api_keys;               // empty: no key is needed
  std::vector<std::string> admin_keys;             // empty: there are no /admin routes
  std::chrono::milliseconds idle_timeout{75000};   // of a connection between requests
  std::chrono::milliseconds read_timeout{30000};   // a request must be complete (408)
  std::chrono::milliseconds write_timeout{60000};  // a client must take data, else it is dropped
  std::chrono::milliseconds request_timeout{0};    // a generation must end (504); 0: no limit
  std::chrono::milliseconds first_ping{
      5000};  // of a stream that waits; then one each ping_interval
  std::chrono::milliseconds ping_interval{1000};
  int num_prepare_threads = 1;  // render and tokenize
  LogFormat log_format = LogFormat::kText;
  LogSink log_sink;  // may be empty
  std::string version = "0.1.0";
};

struct ServedModel {
  std::string name;
  Engine* engine = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: the model has none
  std::shared_ptr<Metrics> metrics;                   // may be null
  int max_queue = 256;  // the engine's, so that a full queue costs no work
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> create(ServerOptions options);
  ~Server();  // stop(), if it was not called
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;  // the one it listens on
  void start(int num_io_threads = 1);
  // Ready from now on. The first is the one for requests that name no model. Names are different;
  // at least one.
  void set_models(std::vector<ServedModel> models);
  void begin_drain();
  // Generations that are not answered in full yet.
  int num_active() const;
  // Waits up to `grace` for answers under way, then closes every connection (their requests are
  // cancelled).
  void stop(Duration grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
