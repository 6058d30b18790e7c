#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <pthread.h>
#include <thread>

#include "app/command.h"
#include "app/config_file.h"
#include "app/model_host.h"
#include "base/machine.h"
#include "base/version.h"
#include "bench/latency.h"
#include "server/server.h"

namespace headrace {
namespace {

struct ServeOptions {
  std::string model;
  std::string config;
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string api_key_file;
  std::string admin_key_file;
  std::string served_name;
  int max_queue = 256;
  std::int64_t max_queue_tokens = 0;
  std::string slo;
  int queue_timeout_ms = 0;
  int request_timeout_ms = 0;
  int drain_timeout_ms = 30000;
  std::string max_body = "16M";
  int max_connections = 1024;
  std::string cors;
  std::string log_format = "text";
  bool json = false;
  EngineFlags engine;
};

Result<std::vector<std::string>> read_keys(std::string_view flag, const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) {
    return keys;
  }
  HR_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  constexpr std::string_view kSpace = " \t\r\n";
  for (std::size_t at = 0; (at = text.find_first_not_of(kSpace, at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    keys.emplace_back(line.substr(0, line.find_last_not_of(kSpace) + 1));
    at = end;
  }
  if (keys.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "{} {}: no key in it, one a line", flag, path);
  }
  return keys;
}

Result<ServerOptions> server_options(const ServeOptions& options) {
  ServerOptions server;
  server.host = options.host;
  server.port = options.port;
  server.version = std::string(version());
  server.cors_origin = options.cors;
  server.max_connections = options.max_connections;
  server.request_timeout = std::chrono::milliseconds(options.request_timeout_ms);
  server.log_format = options.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  server.log_sink = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  HR_ASSIGN_OR_RETURN(server.api_keys, read_keys("--api-key-file", options.api_key_file));
  HR_ASSIGN_OR_RETURN(server.admin_keys, read_keys("--admin-key-file", options.admin_key_file));
  HR_ASSIGN_OR_RETURN(server.max_body_bytes, parse_bytes(options.max_body));
  return server;
}

// ttft_p99 and itl_p99, each at most once.
Status read_slo(const std::string& text, HostSettings& settings) {
  if (text.empty()) {
    return {};
  }
  HR_ASSIGN_OR_RETURN(const std::vector<SloTarget> targets, parse_slo(text));
  for (const SloTarget& target : targets) {
    const auto limit = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(target.limit_ms));
    if (target.name == "ttft_p99") {
      settings.slo_ttft = limit;
    } else if (target.name == "itl_p99") {
      settings.slo_itl = limit;
    } else {
      return make_error(
          ErrorCode::kInvalidArgument, "--slo {}: the server keeps ttft_p99 and itl_p99", text);
    }
  }
  return {};
}

void set_memory_gauges(const ModelHost& host, Metrics& metrics) {
  const MemoryCounters& memory = host.memory();
  metrics.memory_bytes("weights", static_cast<double>(memory.bytes(MemoryPart::kWeights)));
  metrics.memory_bytes("kv", static_cast<double>(memory.bytes(MemoryPart::kKv)));
  metrics.memory_bytes("workspace", static_cast<double>(memory.bytes(MemoryPart::kWorkspace)));
}

// Signals are taken by sigwait() in this thread alone: blocked before any other thread starts.
sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// Ends the process when a stop signal comes before there is anything to drain; loading does not
// look up in between. Lives while loading does.
class StopWhileLoading {
 public:
  explicit StopWhileLoading(const sigset_t& signals)
      : thread_([signals](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const timespec wait{.tv_sec = 0, .tv_nsec = 20'000'000};
            const int signal = sigtimedwait(&signals, nullptr, &wait);
            if (signal > 0) {
              finish_progress();
              fmt::print(stderr,
                         "headrace: stopped by {} while loading\n",
                         signal == SIGINT ? "SIGINT" : "SIGTERM");
              std::_Exit(kExitFailed);
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

void announce(const ServeOptions& options, const ModelHost& host, int port) {
  const BackendInfo& backend = host.backend();
  const std::string address = fmt::format("http://{}:{}", options.host, port);
  if (options.json) {
    print_json({{"address", address},
                {"model", host.name()},
                {"isa", backend.tier},
                {"threads", backend.num_threads}});
    std::fflush(stdout);
    return;
  }
  fmt::print(stderr,
             "headrace {} serves {} on {} ({}, {} threads, context {}); stop with Ctrl-C\n",
             version(),
             host.name(),
             address,
             backend.tier,
             backend.num_threads,
             host.max_context());
}

int serve_until_stopped(const ServeOptions& options,
                        Server& server,
                        ModelHost& host,
                        const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  fmt::print(
      stderr, "draining: {} answers under way; again to stop at once\n", server.num_active());
  server.begin_drain();
  const Duration drain = std::chrono::milliseconds(options.drain_timeout_ms);
  const SteadyClock clock;
  const TimePoint end = clock.now() + drain;
  while (server.num_active() > 0 && clock.now() < end) {
    const timespec wait{.tv_sec = 0, .tv_nsec = 20'000'000};
    if (sigtimedwait(&signals, nullptr, &wait) > 0) {
      break;
    }
  }
  // What is still running is cancelled first, so that each stream ends with an error that says why.
  host.engine().drain(Duration{0});
  server.stop(std::chrono::seconds(1));
  return kExitDone;
}

int serve(ServeOptions& options) {
  auto server_settings = server_options(options);
  if (!server_settings.ok()) {
    return fail(server_settings.error());
  }
  HostSettings settings;
  settings.max_queue = options.max_queue;
  settings.max_queue_tokens = options.max_queue_tokens;
  settings.queue_timeout = std::chrono::milliseconds(options.queue_timeout_ms);
  if (const Status read = read_slo(options.slo, settings); !read.ok()) {
    return fail(read.error());
  }
  auto resolved = find_model_file(options.model);
  if (!resolved.ok()) {
    return fail(resolved.error());
  }
  if (!options.served_name.empty()) {
    resolved->served_name = options.served_name;
  }
  const sigset_t signals = block_stop_signals();
  auto server = Server::create(*std::move(server_settings));
  if (!server.ok()) {
    return fail(server.error());
  }
  (*server)->start();
  const auto metrics = std::make_shared<Metrics>(resolved->served_name);
  settings.metrics = metrics;
  const auto host = [&] {
    const StopWhileLoading watch(signals);
    return ModelHost::load(*resolved, options.engine, settings, show_progress);
  }();
  finish_progress();
  if (!host.ok()) {
    return fail(host.error());
  }
  set_memory_gauges(**host, *metrics);
  (*host)->engine().start();
  (*server)->set_models({{.name = (*host)->name(),
                          .engine = &(*host)->engine(),
                          .tokenizer = (*host)->shared_tokenizer(),
                          .chat_template = (*host)->chat_template(),
                          .metrics = metrics,
                          .max_queue = options.max_queue}});
  announce(options, **host, (*server)->port());
  const int code = serve_until_stopped(options, **server, **host, signals);
  server->reset();
  return code;
}

int serve_as_configured(ServeOptions& options, CLI::App& command) {
  if (!options.config.empty()) {
    if (const Status applied = apply_config_file(command, options.config); !applied.ok()) {
      return fail(applied.error());
    }
  }
  if (options.model.empty()) {
    return fail(make_error(ErrorCode::kInvalidArgument,
                           "serve needs a MODEL: a GGUF file or a short name"));
  }
  return serve(options);
}

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "answer over HTTP, as OpenAI's API does");
  command->add_option("MODEL", options->model, "a GGUF file or a short name");
  command->add_option(
      "--config", options->config, "a TOML file whose keys are these flags, and model");
  command->add_option("--host", options->host, "address to bind")->capture_default_str();
  command->add_option("--port", options->port, "0: any free one")->capture_default_str();
  command->add_option(
      "--api-key-file", options->api_key_file, "keys that clients must show, one a line");
  command->add_option("--admin-key-file",
                      options->admin_key_file,
                      "keys for /admin, one a line (default: no such routes)");
  command->add_option("--served-name", options->served_name, "the model's name in the API");
  command
      ->add_option("--max-queue", options->max_queue, "requests that may wait; one more gets 429")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--max-queue-tokens",
                   options->max_queue_tokens,
                   "tokens of prompts that may wait; more gets 429; 0: no limit")
      ->check(at_least(0));
  command->add_option(
      "--slo", options->slo, "as ttft_p99=2000,itl_p99=150 (ms): refuse and pace to keep it");
  command
      ->add_option(
          "--queue-timeout", options->queue_timeout_ms, "ms a request may wait (504); 0: no limit")
      ->check(at_least(0));
  command
      ->add_option("--request-timeout",
                   options->request_timeout_ms,
                   "ms a request may take (504); 0: no limit")
      ->check(at_least(0));
  command
      ->add_option(
          "--drain-timeout", options->drain_timeout_ms, "ms that answers under way get at the end")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--max-body", options->max_body, "largest request, as 16M")
      ->capture_default_str();
  command->add_option("--max-connections", options->max_connections, "one more gets 503")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--cors", options->cors, "origin that browsers may call from, or *");
  command->add_option("--log-format", options->log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object when it is ready");
  options->engine.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] { return serve_as_configured(*options, *command); };
  });
}

}  // namespace headrace
