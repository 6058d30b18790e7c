// For the server's tests: a real server on a free port of the loopback, before an engine with a
// fake model, and a small blocking client.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "chat/chat_template.h"
#include "engine/engine_fixture.h"
#include "metrics/metrics.h"
#include "server/server.h"

namespace headrace::testing {

struct Reply {
  int status = 0;
  std::string body;
  boost::beast::http::fields headers;
  std::string header(std::string_view name) const {
    return std::string(headers[boost::beast::string_view(name.data(), name.size())]);
  }
  boost::json::value json() const { return boost::json::parse(body); }
};

// One connection.
class Client {
 public:
  explicit Client(int port) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)});
  }
  void send(std::string_view text) {
    boost::asio::write(socket_, boost::asio::buffer(text.data(), text.size()));
  }
  Reply read(bool head = false) {
    namespace http = boost::beast::http;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    parser.skip(head);
    boost::system::error_code ec;
    http::read(socket_, buffer_, parser, ec);
    Reply reply;
    if (ec) {
      return reply;
    }
    reply.status = parser.get().result_int();
    reply.body = parser.get().body();
    reply.headers = parser.get().base();
    return reply;
  }
  // What arrives until `text` has come, or the end.
  std::string read_until(std::string_view text) {
    std::string all;
    char bytes[4096];
    boost::system::error_code ec;
    while (all.find(text) == std::string::npos && !ec) {
      all.append(bytes, socket_.read_some(boost::asio::buffer(bytes), ec));
    }
    return all;
  }
  void close() { socket_.close(); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_{io_};
  boost::beast::flat_buffer buffer_;
};

inline std::string http_text(std::string_view method,
                             std::string_view path,
                             std::string_view body,
                             std::string_view headers = "") {
  return fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}",
                     method,
                     path,
                     body.size(),
                     headers,
                     body);
}

// The model says the alphabet: the token at position p is the letter p % 26.
inline void say_alphabet(std::span<const TokenId> prefix, std::span<float> logits) {
  std::ranges::fill(logits, 0.0F);
  logits['a' + prefix.size() % 26] = 30;  // drawn at any temperature that a test uses
}

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    setup_.clock = std::make_shared<SteadyClock>();
    setup_.logits = say_alphabet;
    setup_.num_blocks = 256;
    setup_.max_context = 512;
    options_.port = 0;
  }

  ~ServerTest() override {
    server_.reset();
    engine_.reset();
  }

  // Listens, but has no model yet.
  void listen() {
    auto server = Server::create(options_);
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
    server_->start(2);
  }

  void serve(bool run_engine = true) {
    listen();
    metrics_ = std::make_shared<Metrics>("tiny");
    setup_.metrics = metrics_;
    engine_ = make_engine(setup_);
    if (run_engine) {
      engine_->start();
    }
    auto parsed = ChatTemplate::parse(
        "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }}\n{% endfor %}"
        "{% if tools %}tools{% endif %}{% if add_generation_prompt %}>{% endif %}");
    ASSERT_TRUE(parsed.ok());
    ServedModel model;
    model.name = "tiny";
    model.engine = engine_.get();
    model.tokenizer = make_byte_tokenizer();
    model.chat_template = std::make_shared<const ChatTemplate>(*std::move(parsed));
    model.metrics = metrics_;
    model.max_queue = setup_.options.max_queue;
    ServedModel raw = model;
    raw.name = "raw";
    raw.chat_template = nullptr;
    server_->set_models({model, raw});
  }

  Reply call(std::string_view method,
             std::string_view path,
             std::string_view body = "",
             std::string_view headers = "") const {
    Client client(server_->port());
    client.send(http_text(method, path, body, headers));
    return client.read(method == "HEAD");
  }
  Reply post(std::string_view path, std::string_view body) const {
    return call("POST", path, body);
  }

  // Waits for what other threads do; a test that waits in vain fails.
  template <typename Condition>
  static bool eventually(Condition&& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  EngineSetup setup_;
  ServerOptions options_;
  std::shared_ptr<Metrics> metrics_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
};

}  // namespace headrace::testing
