// One connection: reads requests one after the other (pipelined ones wait), answers each, keeps the
// connection alive while both sides want to. Everything runs on the connection's strand.
//
// While a request is being answered the socket is watched: a client that closes it, or only its
// sending half, is gone, and the exchange's when_gone() is called at once. Time limits: an idle
// connection is closed in silence; a request that has begun must be complete within read_timeout
// (408); a client that takes no data for write_timeout is dropped.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http.h"

namespace headrace {

struct HttpLimits {
  std::uint64_t max_body_bytes = std::uint64_t{16} << 20U;
  std::uint32_t max_header_bytes = 32768;
  std::chrono::milliseconds idle_timeout{75000};
  std::chrono::milliseconds read_timeout{30000};
  std::chrono::milliseconds write_timeout{60000};
};

// What every session of a server shares. Outlives them.
struct HttpService {
  HttpLimits limits;
  Handler handle;                              // called for each complete request
  std::function<void(const RequestLog&)> log;  // after each answer
  std::function<bool()> draining;              // then no connection is kept alive
  std::string cors_origin;                     // "": no CORS headers
};

class HttpSession final : public Exchange, public std::enable_shared_from_this<HttpSession> {
 public:
  // `on_end` is called once, when the connection is over.
  HttpSession(boost::asio::ip::tcp::socket socket,
              Strand strand,
              const HttpService& service,
              std::function<void()> on_end);
  ~HttpSession() override;
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Any thread.
  void start();
  void stop();
  // Answers 503 at once and closes: the server has too many connections.
  void refuse();

  // On the strand, or when no thread runs it any more.
  void close();

  const HttpRequest& request() const override { return request_; }
  Strand executor() override { return strand_; }
  RequestLog& log() override { return log_; }
  void respond(HttpResponse response) override;
  void start_stream(HttpResponse head) override;
  void write(std::string data, std::function<void()> done) override;
  void finish(std::string data) override;
  void when_gone(std::function<void()> gone) override { gone_ = std::move(gone); }

 private:
  enum class State { kReading, kHandling, kStreaming, kFinishing, kClosed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // The operation under way ends with an error and timed_out_ after this time.
  void arm(std::chrono::milliseconds limit);
  void disarm();

  void wait_for_request();
  void read_header();
  void on_header(boost::beast::error_code ec);
  void continue_to_body();
  void read_body();
  void on_request(boost::beast::error_code ec);
  void take_request();
  void on_read_error(boost::beast::error_code ec);
  void refuse_request(const ApiError& error);

  void watch_client();
  void on_readable(boost::beast::error_code ec, std::uint64_t request_number);
  void poll_client(std::uint64_t request_number);

  std::string head_text(const HttpResponse& response, bool chunked) const;
  void send(std::string data, std::function<void()> done);
  void on_sent(boost::beast::error_code ec, const std::function<void()>& done);
  void answered();
  void write_log();
  void linger();
  void drain_input(std::size_t budget);

  boost::asio::ip::tcp::socket socket_;  // its handlers run on strand_
  Strand strand_;
  const HttpService& service_;
  std::function<void()> on_end_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  boost::asio::steady_timer deadline_;  // of the operation under way
  std::uint64_t deadline_number_ = 0;
  bool timed_out_ = false;
  boost::asio::steady_timer poll_timer_;
  State state_ = State::kReading;
  HttpRequest request_;
  RequestLog log_;
  std::uint64_t request_number_ = 0;
  bool head_request_ = false;
  bool http_1_0_ = false;
  bool keep_alive_ = true;
  std::string pending_;  // a stream's head until its first write
  std::string sending_;
  std::function<void()> gone_;
};

}  // namespace headrace
