// The answering half of HttpSession.
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "server/http_session.h"

namespace headrace {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::beast::error_code;

constexpr std::size_t kLingerBytes = std::size_t{64} << 20U;
constexpr std::size_t kLoggedPathBytes = 512;
constexpr std::chrono::milliseconds kLingerTime{2000};

std::string chunk(const std::string& data) {
  return data.empty() ? std::string() : fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

}  // namespace

std::string HttpSession::head_text(const HttpResponse& response, bool stream) const {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nServer: headrace\r\nx-request-id: {}\r\n",
                                 response.status,
                                 reason_phrase(response.status),
                                 request_.id);
  if (response.status != 204) {
    head += fmt::format("Content-Type: {}\r\n", response.content_type);
  }
  if (stream) {
    head += http_1_0_ ? "Cache-Control: no-cache\r\n"
                      : "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n";
  } else if (response.status != 204) {
    head += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  for (const auto& [name, value] : response.headers) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  if (!service_.cors_origin.empty()) {
    head += fmt::format(
        "Access-Control-Allow-Origin: {}\r\nAccess-Control-Expose-Headers: x-request-id, x-seed, "
        "x-queue-ms, x-ttft-ms, x-total-ms, x-ignored-fields, retry-after\r\nVary: Origin\r\n",
        service_.cors_origin);
  }
  head += keep_alive_ ? (http_1_0_ ? "Connection: keep-alive\r\n" : "") : "Connection: close\r\n";
  return head + "\r\n";
}

void HttpSession::respond(HttpResponse response) {
  if (state_ != State::kHandling) {
    return;
  }
  state_ = State::kFinishing;
  log_.status = response.status;
  keep_alive_ = keep_alive_ && !service_.draining();
  std::string data = head_text(response, false);
  if (!head_request_) {
    data += response.body;
  }
  send(std::move(data), [self = shared_from_this()] { self->answered(); });
}

void HttpSession::start_stream(HttpResponse head) {
  if (state_ != State::kHandling) {
    return;
  }
  state_ = State::kStreaming;
  log_.status = head.status;
  keep_alive_ = keep_alive_ && !http_1_0_ && !service_.draining();
  pending_ = head_text(head, true);
}

void HttpSession::write(std::string data, std::function<void()> done) {
  if (state_ != State::kStreaming) {
    return;
  }
  send(std::exchange(pending_, {}) + (http_1_0_ ? data : chunk(data)), std::move(done));
}

void HttpSession::finish(std::string data) {
  if (state_ != State::kStreaming) {
    return;
  }
  state_ = State::kFinishing;
  std::string all = std::exchange(pending_, {});
  all += http_1_0_ ? data : chunk(data) + "0\r\n\r\n";
  send(std::move(all), [self = shared_from_this()] { self->answered(); });
}

void HttpSession::send(std::string data, std::function<void()> done) {
  sending_ = std::move(data);
  arm(service_.limits.write_timeout);
  asio::async_write(socket_,
                    asio::buffer(sending_),
                    [self = shared_from_this(), done = std::move(done)](
                        error_code ec, std::size_t /*size*/) { self->on_sent(ec, done); });
}

void HttpSession::on_sent(error_code ec, const std::function<void()>& done) {
  if (state_ == State::kClosed) {
    return;
  }
  if (ec) {
    return close();
  }
  disarm();
  done();
}

void HttpSession::answered() {
  state_ = State::kReading;
  gone_ = nullptr;
  poll_timer_.cancel();
  write_log();
  if (!keep_alive_) {
    return linger();
  }
  error_code ignored;
  socket_.cancel(ignored);  // the watch
  wait_for_request();
}

void HttpSession::write_log() {
  log_.id = request_.id;
  log_.method = request_.method;
  log_.path = request_.path.substr(0, kLoggedPathBytes);
  log_.total_ms = to_millis(std::chrono::steady_clock::now() - request_.arrival);
  service_.log(log_);
}

// Closing a socket with unread input resets the connection, and the client may lose the answer:
// what it still sends is read and thrown away for a while.
void HttpSession::linger() {
  error_code ignored;
  socket_.cancel(ignored);
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  arm(kLingerTime);
  drain_input(kLingerBytes);
}

void HttpSession::drain_input(std::size_t budget) {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(65536),
                          [self = shared_from_this(), budget](error_code ec, std::size_t size) {
                            if (ec || size >= budget || self->state_ == State::kClosed) {
                              return self->close();
                            }
                            self->drain_input(budget - size);
                          });
}

}  // namespace headrace
