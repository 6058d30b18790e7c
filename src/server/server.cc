#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/json_text.h"
#include "server/core.h"
#include "server/http_session.h"
#include "server/routes.h"

namespace headrace {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};  // when the system is out of sockets
constexpr std::chrono::milliseconds kCloseGrace{
    2000};  // for connections to end after they were closed
constexpr std::chrono::milliseconds kStopPoll{5};

HttpService make_service(ServerCore& core, const Router& router) {
  const ServerOptions& options = core.options;
  HttpService service;
  service.limits.max_body_bytes = options.max_body_bytes;
  service.limits.idle_timeout = options.idle_timeout;
  service.limits.read_timeout = options.read_timeout;
  service.limits.write_timeout = options.write_timeout;
  service.cors_origin = options.cors_origin;
  service.handle = [&router](const std::shared_ptr<Exchange>& exchange) {
    router.dispatch(exchange);
  };
  service.draining = [&core] { return core.state.load() == ServerState::kDraining; };
  service.log = [&options](const RequestLog& log) {
    if (options.log_sink) {
      options.log_sink(format_log(log, options.log_format));
    }
  };
  return service;
}

Status check_origin(const std::string& origin) {
  if (std::all_of(origin.begin(), origin.end(), [](char c) { return c > 0x20 && c < 0x7F; })) {
    return {};
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "--cors {} is no origin: write it as https://example.org, or *",
                    json_quoted(origin));
}

Result<tcp::endpoint> parse_endpoint(const ServerOptions& options) {
  error_code ec;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const asio::ip::address address = asio::ip::make_address(host, ec);
  if (ec) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "--host {}: is no IP address: use 127.0.0.1 for this machine, 0.0.0.0 for every interface",
        options.host);
  }
  if (options.port < 0 || options.port > 65535) {
    return make_error(
        ErrorCode::kInvalidArgument, "--port {}: must be from 0 to 65535", options.port);
  }
  return tcp::endpoint(address, static_cast<std::uint16_t>(options.port));
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : core_(std::move(options)),
        router_(core_.options.api_keys, core_.options.admin_keys, core_.options.cors_origin),
        accept_strand_(asio::make_strand(io_)),
        acceptor_(accept_strand_),
        accept_timer_(accept_strand_) {
    add_all_routes(router_, core_);
    service_ = make_service(core_, router_);
  }

  Status listen(const tcp::endpoint& endpoint) {
    error_code ec;
    acceptor_.open(endpoint.protocol(), ec);
    if (!ec) {
      acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
    }
    if (!ec) {
      acceptor_.bind(endpoint, ec);
    }
    if (!ec) {
      acceptor_.listen(asio::socket_base::max_listen_connections, ec);
    }
    if (ec == asio::error::address_in_use) {
      return make_error(ErrorCode::kUnavailable,
                        "port {} is taken: choose another with --port, or 0 for any",
                        endpoint.port());
    }
    if (ec) {
      return make_error(ErrorCode::kUnavailable,
                        "cannot listen on {}:{}: {}",
                        endpoint.address().to_string(),
                        endpoint.port(),
                        ec.message());
    }
    port_ = acceptor_.local_endpoint().port();
    return {};
  }

  void start(int num_io_threads) {
    asio::post(accept_strand_, [this] { accept(); });
    for (int i = 0; i < num_io_threads; ++i) {
      threads_.emplace_back([this] { run(); });
    }
  }

  void stop(Duration grace) {
    core_.state = ServerState::kDraining;
    wait_until(grace, [this] { return core_.num_jobs.load() == 0; });
    asio::post(accept_strand_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      accept_timer_.cancel();
    });
    for_each_session([](HttpSession& session) { session.stop(); });
    wait_until(kCloseGrace, [this] { return num_sessions_.load() == 0; });
    core_.pool.stop();
    core_.pool.join();
    io_.stop();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
    // No thread runs handlers any more: what is still open is closed here.
    for_each_session([](HttpSession& session) { session.close(); });
  }

  ServerCore& core() { return core_; }
  int port() const { return port_; }

 private:
  void run() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (
          const std::exception& e) {  // e.g. no memory: that request is lost, the server goes on
        if (core_.options.log_sink) {
          core_.options.log_sink(fmt::format("error in a connection: {}", e.what()));
        }
      }
    }
  }

  void accept() {
    const Strand strand = asio::make_strand(io_);
    acceptor_.async_accept(strand, [this, strand](error_code ec, tcp::socket socket) {
      if (!acceptor_.is_open()) {
        return;
      }
      if (ec) {
        return pause_accepting();
      }
      open_session(std::move(socket), strand);
      accept();
    });
  }

  void pause_accepting() {
    accept_timer_.expires_after(kAcceptPause);
    accept_timer_.async_wait([this](error_code ec) {
      if (!ec && acceptor_.is_open()) {
        accept();
      }
    });
  }

  void open_session(tcp::socket socket, const Strand& strand) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const bool full = num_sessions_.fetch_add(1) >= core_.options.max_connections;
    auto session = std::make_shared<HttpSession>(
        std::move(socket), strand, service_, [this] { num_sessions_.fetch_sub(1); });
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(sessions_,
                    [](const std::weak_ptr<HttpSession>& weak) { return weak.expired(); });
      sessions_.push_back(session);
    }
    if (full) {
      session->refuse();
    } else {
      session->start();
    }
  }

  template <typename Fn>
  void for_each_session(Fn&& fn) {
    std::vector<std::shared_ptr<HttpSession>> open;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& weak : sessions_) {
        if (auto session = weak.lock()) {
          open.push_back(std::move(session));
        }
      }
    }
    for (const auto& session : open) {
      fn(*session);
    }
  }

  template <typename Condition>
  void wait_until(Duration limit, Condition&& condition) {
    const TimePoint end = std::chrono::steady_clock::now() + limit;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kStopPoll);
    }
  }

  // In this order: the sessions that the context still holds go first, then what they use.
  ServerCore core_;
  Router router_;
  HttpService service_;
  std::atomic<int> num_sessions_{0};
  std::mutex mutex_;
  std::list<std::weak_ptr<HttpSession>> sessions_;
  asio::io_context io_;
  Strand accept_strand_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
  std::vector<std::thread> threads_;
  int port_ = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  if (impl_ == nullptr) {
    return;
  }
  try {
    stop(Duration(0));
  } catch (const std::exception&) {
    // A destructor has nobody to tell; whoever wants to know calls stop().
  }
}

Result<std::unique_ptr<Server>> Server::create(ServerOptions options) {
  HR_RETURN_IF_ERROR(check_origin(options.cors_origin));
  HR_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, parse_endpoint(options));
  auto impl = std::make_unique<Impl>(std::move(options));
  HR_RETURN_IF_ERROR(impl->listen(endpoint));
  return std::unique_ptr<Server>(
      new Server(std::move(impl)));  // NOLINT: the constructor is private
}

int Server::port() const { return impl_->port(); }
void Server::start(int num_io_threads) { impl_->start(num_io_threads); }

void Server::set_models(std::vector<ServedModel> models) {
  impl_->core().models.set(std::move(models));
  ServerState loading = ServerState::kLoading;
  impl_->core().state.compare_exchange_strong(loading, ServerState::kReady);
}

void Server::begin_drain() { impl_->core().state = ServerState::kDraining; }
int Server::num_active() const { return impl_->core().num_jobs.load(); }

void Server::stop(Duration grace) { impl_->stop(grace); }

}  // namespace headrace
