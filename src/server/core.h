// What the routes share: options, models, state, and the threads that render and tokenize.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "server/models.h"
#include "server/server.h"

namespace headrace {

enum class ServerState { kLoading, kReady, kDraining };

struct ServerCore {
  explicit ServerCore(ServerOptions options_in)
      : options(std::move(options_in)),
        pool(static_cast<std::size_t>(options.num_prepare_threads)) {}

  const ServerOptions options;
  ModelTable models;
  std::atomic<ServerState> state{ServerState::kLoading};
  std::atomic<int> num_jobs{0};  // generations that are not answered in full
  boost::asio::thread_pool pool;
};

}  // namespace headrace
