#include "server/http_session.h"

#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <cctype>
#include <iterator>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <utility>

namespace headrace {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr std::size_t kMaxPipelinedBytes = 65536;  // read ahead while a request is answered
constexpr std::chrono::milliseconds kPollInterval{50};

std::string make_id() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return fmt::format("req-{:016x}", engine());
}

// A client's id is echoed if it is short and plain.
std::string request_id(std::string_view given) {
  const bool plain =
      !given.empty() && given.size() <= 128 &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  return plain ? std::string(given) : make_id();
}

// The path of a target in origin form or, as a proxy's client sends it, with scheme and host in
// front (RFC 9112, 3.2.2).
std::string path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (beast::iequals(target.substr(0, scheme.size()), scheme)) {
      const std::size_t path = target.find_first_of("/?#", scheme.size());
      target = path == std::string_view::npos ? "/" : target.substr(path);
      break;
    }
  }
  std::string path(target.substr(0, target.find_first_of("?#")));
  return path.empty() ? "/" : path;
}

// What is not understood would leave the body to be read as the next request.
bool knows_coding(const http::request<http::string_body>& message) {
  const auto [begin, end] = message.equal_range(http::field::transfer_encoding);
  return std::all_of(begin,
                     end,
                     [](const auto& field) { return beast::iequals(field.value(), "chunked"); }) &&
         std::distance(begin, end) <= 1;
}

}  // namespace

HttpSession::HttpSession(asio::ip::tcp::socket socket,
                         Strand strand,
                         const HttpService& service,
                         std::function<void()> on_end)
    : socket_(std::move(socket)),
      strand_(std::move(strand)),
      service_(service),
      on_end_(std::move(on_end)),
      deadline_(strand_),
      poll_timer_(strand_) {}

HttpSession::~HttpSession() {
  if (on_end_) {
    on_end_();
  }
}

void HttpSession::start() {
  asio::post(strand_, [self = shared_from_this()] { self->wait_for_request(); });
}

void HttpSession::stop() {
  asio::post(strand_, [self = shared_from_this()] { self->close(); });
}

void HttpSession::refuse() {
  asio::post(strand_, [self = shared_from_this()] {
    self->refuse_request(api_error(503, "too many connections: try again later"));
  });
}

void HttpSession::close() {
  if (state_ == State::kClosed) {
    return;
  }
  const State before = std::exchange(state_, State::kClosed);
  error_code ignored;
  deadline_.cancel();
  poll_timer_.cancel();
  socket_.close(ignored);
  // Moved out first: what it holds may hold this session.
  const std::function<void()> gone = std::exchange(gone_, nullptr);
  if (before == State::kHandling || before == State::kStreaming) {
    if (log_.status == 0) {
      log_.status = 499;
    }
    if (gone) {
      gone();
    }
    write_log();
  } else if (before == State::kFinishing) {
    write_log();
  }
}

void HttpSession::arm(std::chrono::milliseconds limit) {
  timed_out_ = false;
  deadline_.expires_after(limit);
  deadline_.async_wait([self = shared_from_this(), number = ++deadline_number_](error_code ec) {
    if (ec || number != self->deadline_number_ || self->state_ == State::kClosed) {
      return;
    }
    self->timed_out_ = true;
    self->socket_.cancel(ec);
  });
}

void HttpSession::disarm() {
  ++deadline_number_;
  timed_out_ = false;
  deadline_.cancel();
}

void HttpSession::wait_for_request() {
  state_ = State::kReading;
  if (buffer_.size() > 0) {
    return read_header();
  }
  arm(service_.limits.idle_timeout);
  socket_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](error_code ec, std::size_t size) {
                            if (ec || self->state_ == State::kClosed) {
                              return self->close();
                            }
                            self->buffer_.commit(size);
                            self->read_header();
                          });
}

void HttpSession::read_header() {
  ++request_number_;
  request_ = HttpRequest{};
  request_.arrival = std::chrono::steady_clock::now();
  log_ = RequestLog{};
  head_request_ = false;
  parser_.emplace();
  parser_->header_limit(service_.limits.max_header_bytes);
  parser_->body_limit(service_.limits.max_body_bytes);
  arm(service_.limits.read_timeout);  // until the body is there
  http::async_read_header(
      socket_, buffer_, *parser_, [self = shared_from_this()](error_code ec, std::size_t /*size*/) {
        self->on_header(ec);
      });
}

void HttpSession::on_header(error_code ec) {
  if (state_ == State::kClosed) {
    return;
  }
  request_.id = request_id({});
  if (ec) {
    return on_read_error(ec);
  }
  const auto& message = parser_->get();
  const auto id = message["x-request-id"];
  request_.id = request_id({id.data(), id.size()});
  if (!knows_coding(message)) {
    return refuse_request(api_error(501, "the only transfer coding this server knows is chunked"));
  }
  if (message.count(http::field::expect) == 0) {
    return read_body();
  }
  if (!beast::iequals(message[http::field::expect], "100-continue")) {
    return refuse_request(api_error(417, "the only expectation this server knows is 100-continue"));
  }
  continue_to_body();
}

void HttpSession::continue_to_body() {
  sending_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_,
                    asio::buffer(sending_),
                    [self = shared_from_this()](error_code ec, std::size_t /*size*/) {
                      if (ec || self->state_ == State::kClosed) {
                        return self->close();
                      }
                      self->read_body();
                    });
}

void HttpSession::read_body() {
  http::async_read(
      socket_, buffer_, *parser_, [self = shared_from_this()](error_code ec, std::size_t /*size*/) {
        self->on_request(ec);
      });
}

void HttpSession::on_read_error(error_code ec) {
  const bool nothing_yet = ec == http::error::end_of_stream;
  if (timed_out_) {
    return refuse_request(api_error(408,
                                    fmt::format("the request was not complete after {} ms",
                                                service_.limits.read_timeout.count())));
  }
  if (ec == http::error::body_limit) {
    return refuse_request(api_error(
        413, fmt::format("the body is larger than {} bytes", service_.limits.max_body_bytes)));
  }
  if (ec == http::error::header_limit) {
    return refuse_request(api_error(
        431,
        fmt::format("the headers are larger than {} bytes", service_.limits.max_header_bytes)));
  }
  if (!nothing_yet && ec != http::error::partial_message &&
      ec.category() == http::make_error_code(http::error::bad_method).category()) {
    return refuse_request(bad_request(fmt::format("this is not HTTP: {}", ec.message())));
  }
  close();
}

void HttpSession::refuse_request(const ApiError& error) {
  if (request_.id.empty()) {
    request_.id = request_id({});
    request_.arrival = std::chrono::steady_clock::now();
  }
  if (parser_ && parser_->is_header_done()) {
    request_.method = std::string(parser_->get().method_string());
    request_.path = std::string(parser_->get().target());
  }
  keep_alive_ = false;
  state_ = State::kHandling;
  respond(error_response(error));
}

void HttpSession::on_request(error_code ec) {
  if (state_ == State::kClosed) {
    return;
  }
  if (ec) {
    return on_read_error(ec);
  }
  take_request();
  state_ = State::kHandling;
  disarm();
  const std::uint64_t number = request_number_;
  service_.handle(shared_from_this());
  if (number == request_number_ && (state_ == State::kHandling || state_ == State::kStreaming)) {
    watch_client();
  }
}

void HttpSession::take_request() {
  auto message = parser_->release();
  http_1_0_ = message.version() < 11;
  keep_alive_ = message.keep_alive() && !service_.draining();
  head_request_ = message.method() == http::verb::head;
  request_.method = std::string(message.method_string());
  request_.path = path_of({message.target().data(), message.target().size()});
  request_.authorization = std::string(message[http::field::authorization]);
  request_.content_type = std::string(message[http::field::content_type]);
  request_.wanted_headers = std::string(message[http::field::access_control_request_headers]);
  request_.body = std::move(message.body());
  parser_.reset();
}

void HttpSession::watch_client() {
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this(), number = request_number_](error_code ec) {
                       self->on_readable(ec, number);
                     });
}

void HttpSession::on_readable(error_code ec, std::uint64_t request_number) {
  const bool answering = state_ == State::kHandling || state_ == State::kStreaming;
  if (ec || request_number != request_number_ || !answering) {
    return;
  }
  char byte = 0;
  const auto size = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
    return close();
  }
  if (size < 0) {
    return watch_client();
  }
  // The next request came early: it is put aside, so that the end of the connection can still be
  // seen behind it.
  if (buffer_.size() >= kMaxPipelinedBytes) {
    return poll_client(request_number);
  }
  error_code read_error;
  const std::size_t taken = socket_.read_some(buffer_.prepare(4096), read_error);
  buffer_.commit(taken);
  watch_client();
}

// A client that sends more than is put aside: its end can only be asked for.
void HttpSession::poll_client(std::uint64_t request_number) {
  const bool answering = state_ == State::kHandling || state_ == State::kStreaming;
  if (request_number != request_number_ || !answering) {
    return;
  }
  pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
  if (::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
    return close();
  }
  poll_timer_.expires_after(kPollInterval);
  poll_timer_.async_wait([self = shared_from_this(), request_number](error_code ec) {
    if (!ec) {
      self->poll_client(request_number);
    }
  });
}

}  // namespace headrace
