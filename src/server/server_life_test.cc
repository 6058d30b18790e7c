// Keys, limits, slow and vanishing clients, loading and draining.
#include <atomic>
#include <gmock/gmock.h>
#include <mutex>
#include <string>

#include "server/server.h"
#include "server/server_fixture.h"

namespace headrace::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const char* const kEndless = R"({"prompt":"a","max_tokens":400,"stream":true})";

TEST_F(ServerTest, LoadingIsLiveButNotReady) {
  listen();
  EXPECT_EQ(call("GET", "/health/live").status, 200);
  EXPECT_EQ(call("GET", "/health/ready").status, 503);
  EXPECT_THAT(call("GET", "/health").body, HasSubstr("loading"));
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a"})").status, 503);
  EXPECT_EQ(call("GET", "/v1/models").body, R"({"object":"list","data":[]})");
}

TEST_F(ServerTest, DrainingRefusesNewWorkAndFinishesOld) {
  serve(false);
  Client running(server_->port());
  running.send(
      http_text("POST", "/v1/completions", R"({"prompt":"xyz","max_tokens":3,"temperature":0})"));
  ASSERT_TRUE(eventually([&] { return engine_->stats().waiting == 1; }));
  server_->begin_drain();
  EXPECT_EQ(call("GET", "/health/live").status, 200);
  EXPECT_EQ(call("GET", "/health").status, 503);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a"})").status, 503);
  EXPECT_TRUE(eventually([&] { return server_->num_active() == 1; }));
  engine_->start();
  const Reply reply = running.read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(eventually([&] { return server_->num_active() == 0; }));
}

TEST_F(ServerTest, StopCutsWhatIsStillRunning) {
  serve(false);
  Client running(server_->port());
  running.send(http_text("POST", "/v1/completions", kEndless));
  ASSERT_TRUE(eventually([&] { return engine_->stats().waiting == 1; }));
  server_->stop(Duration{0});
  EXPECT_EQ(running.read().status, 0);
  EXPECT_EQ(server_->num_active(), 0);
}

TEST_F(ServerTest, ATakenPortIsSaid) {
  listen();
  ServerOptions again = options_;
  again.port = server_->port();
  const auto second = Server::create(again);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("is taken: choose another with --port"));
  again.host = "nowhere";
  EXPECT_EQ(Server::create(again).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ServerTest, KeysGuardAllButHealthAndThePage) {
  options_.api_keys = {"first", "second"};
  serve();
  EXPECT_EQ(call("GET", "/health").status, 200);
  EXPECT_EQ(call("GET", "/").status, 200);
  EXPECT_EQ(call("GET", "/v1/models").status, 401);
  EXPECT_EQ(call("GET", "/metrics").status, 401);
  EXPECT_EQ(call("GET", "/v1/models", "", "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(call("GET", "/v1/models", "", "Authorization: Basic first\r\n").status, 401);
  for (const char* wrong : {"", "firs", "firstx", "First", "first,second", "first second"}) {
    const std::string header = fmt::format("Authorization: Bearer {}\r\n", wrong);
    EXPECT_EQ(call("GET", "/v1/models", "", header).status, 401) << wrong;
  }
  EXPECT_EQ(call("GET", "/v1/models", "", "Authorization: Bearer first\r\n").status, 200);
  EXPECT_EQ(call("GET", "/v1/models", "", "authorization: bearer first  \r\n").status, 200);
  EXPECT_EQ(call("GET", "/v1/models", "", "Authorization: Bearer second\r\n").status, 200);
  EXPECT_EQ(call("GET", "/v1/models").header("www-authenticate"), "Bearer");
}

TEST_F(ServerTest, AnAdminKeySwitchesTheBatching) {
  options_.api_keys = {"client"};
  options_.admin_keys = {"admin"};
  serve();
  const std::string_view admin = "Authorization: Bearer admin\r\n";
  const auto batch = [&](std::string_view body, std::string_view headers) {
    return call("POST", "/admin/batching", body, headers);
  };
  EXPECT_EQ(batch(R"({"batching":"static"})", "").status, 401);
  EXPECT_EQ(batch(R"({"batching":"static"})", "Authorization: Bearer client\r\n").status, 401);
  EXPECT_EQ(engine_->batching(), "continuous");
  const Reply reply = batch(R"({"batching":"static"})", admin);
  EXPECT_EQ(reply.body, R"({"batching":"static","models":["tiny","raw"]})");
  EXPECT_EQ(engine_->batching(), "static");
  EXPECT_EQ(batch(R"({"batching":"dynamic","model":"tiny"})", admin).body,
            R"({"batching":"dynamic","models":["tiny"]})");
  EXPECT_EQ(engine_->batching(), "dynamic");
  EXPECT_EQ(batch(R"({"batching":"other"})", admin).status, 400);
  EXPECT_EQ(batch(R"({"batching":3})", admin).status, 400);
  EXPECT_EQ(batch("{}", admin).json().at("error").at("param").as_string(), "batching");
  EXPECT_EQ(batch("[]", admin).status, 400);
  EXPECT_EQ(batch(R"({"batching":"static","model":"other"})", admin).status, 404);
  EXPECT_EQ(call("GET", "/admin/batching", "", admin).status, 405);
  EXPECT_EQ(engine_->batching(), "dynamic");
  // An admin's key is no client's.
  EXPECT_EQ(call("GET", "/v1/models", "", admin).status, 401);
}

TEST_F(ServerTest, WithoutAdminKeysThereIsNoAdminRoute) {
  options_.api_keys = {"client"};
  serve();
  EXPECT_EQ(
      call(
          "POST", "/admin/batching", R"({"batching":"static"})", "Authorization: Bearer client\r\n")
          .status,
      404);
}

TEST_F(ServerTest, AnswersGoOnWhileTheBatchingIsSwitched) {
  options_.admin_keys = {"admin"};
  setup_.options.scheduler.batch_delay = std::chrono::milliseconds(1);
  serve();
  std::vector<std::thread> clients;
  std::atomic<int> num_ok{0};
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      for (int k = 0; k < 6; ++k) {
        const Reply reply = post("/v1/completions", R"({"prompt":"abc","max_tokens":40})");
        num_ok += reply.status == 200 ? 1 : 0;
      }
    });
  }
  for (int i = 0; i < 12; ++i) {
    const char* const names[] = {"static", "dynamic", "continuous"};
    EXPECT_EQ(call("POST",
                   "/admin/batching",
                   fmt::format(R"({{"batching":"{}"}})", names[i % 3]),
                   "Authorization: Bearer admin\r\n")
                  .status,
              200);
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(num_ok, 24);
}

TEST_F(ServerTest, CorsIsOffUnlessAsked) {
  serve();
  EXPECT_EQ(call("GET", "/health").header("access-control-allow-origin"), "");
}

TEST_F(ServerTest, CorsAnswersPreflights) {
  options_.cors_origin = "https://app.example";
  serve();
  const Reply reply = call("OPTIONS", "/v1/completions");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://app.example");
  EXPECT_THAT(reply.header("access-control-allow-methods"), HasSubstr("POST"));
}

// As a browser sends it before a page's client may call: without the key, with all headers' names.
TEST_F(ServerTest, CorsAllowsTheHeadersThatAPreflightNames) {
  options_.cors_origin = "https://app.example";
  options_.api_keys = {"key"};
  serve();
  const auto preflight = [this](std::string_view headers) {
    return call("OPTIONS",
                "/v1/chat/completions",
                "",
                fmt::format("Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n"
                            "Access-Control-Request-Headers: {}\r\n",
                            headers));
  };
  const std::string names = "authorization,content-type,x-stainless-lang,x-stainless-retry-count";
  const Reply reply = preflight(names);
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(reply.header("access-control-allow-headers"), names);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(reply.header("access-control-allow-methods"), "POST, OPTIONS");
  EXPECT_EQ(preflight("a;b").header("access-control-allow-headers"),
            "authorization, content-type, x-request-id");
  EXPECT_EQ(preflight(std::string(1001, 'a')).header("access-control-allow-headers"),
            "authorization, content-type, x-request-id");
  // A refusal can be read by the page as well.
  const Reply refused = post("/v1/chat/completions", "{}");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("access-control-allow-origin"), "https://app.example");
}

TEST_F(ServerTest, AFullQueueIsRefusedWithRetryAfter) {
  setup_.options.max_queue = 1;
  setup_.options.scheduler.max_sequences = 1;
  serve(false);
  Client first(server_->port());
  Client second(server_->port());
  first.send(http_text("POST", "/v1/completions", kEndless));
  second.send(http_text("POST", "/v1/completions", kEndless));
  ASSERT_TRUE(eventually([&] { return engine_->stats().waiting == 2; }));
  for (const char* body : {R"({"prompt":"a"})", kEndless}) {  // a stream keeps the status, too
    const Reply reply = post("/v1/completions", body);
    EXPECT_EQ(reply.status, 429);
    EXPECT_EQ(reply.header("retry-after"), "1");
  }
  EXPECT_EQ(call("GET", "/health/live").status, 200);
  EXPECT_THAT(metrics_->text(),
              HasSubstr("headrace_requests_total{model_name=\"tiny\",outcome=\"rejected\"} 2\n"));
}

TEST_F(ServerTest, ADeadlineThatPassesIs504) {
  setup_.hook = [](std::span<const SequenceRows>) { std::this_thread::sleep_for(milliseconds(5)); };
  serve();
  const Reply whole =
      post("/v1/completions", R"({"prompt":"a","max_tokens":400,"deadline_ms":30})");
  EXPECT_EQ(whole.status, 504) << whole.body;
  // The head of a stream is out already: the error comes as an event.
  const Reply stream =
      post("/v1/completions", R"({"prompt":"a","max_tokens":400,"deadline_ms":200,"stream":true})");
  EXPECT_EQ(stream.status, 200);
  EXPECT_THAT(stream.body,
              ::testing::EndsWith("\"code\":\"deadline_exceeded\"}}\n\ndata: [DONE]\n\n"));
}

TEST_F(ServerTest, AClientThatGoesAwayFreesItsBlocks) {
  setup_.hook = [](std::span<const SequenceRows>) { std::this_thread::sleep_for(milliseconds(5)); };
  serve();
  {
    Client client(server_->port());
    client.send(http_text("POST", "/v1/completions", kEndless));
    client.read_until("data: ");
    EXPECT_TRUE(eventually([&] { return engine_->stats().running == 1; }));
  }
  EXPECT_TRUE(
      eventually([&] { return engine_->stats().running == 0 && engine_->stats().kv.used == 0; }));
  EXPECT_TRUE(eventually(
      [&] { return metrics_->text().find("outcome=\"aborted\"} 1\n") != std::string::npos; }));
  // Not only streams.
  {
    Client client(server_->port());
    client.send(http_text("POST", "/v1/completions", R"({"prompt":"a","max_tokens":400})"));
    EXPECT_TRUE(eventually([&] { return engine_->stats().running == 1; }));
  }
  EXPECT_TRUE(
      eventually([&] { return engine_->stats().running == 0 && engine_->stats().kv.used == 0; }));
}

TEST_F(ServerTest, WhatAClientGotBeforeItWentAwayIsLogged) {
  std::mutex mutex;
  std::string line;
  options_.log_sink = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    line = text;
  };
  setup_.hook = [](std::span<const SequenceRows>) { std::this_thread::sleep_for(milliseconds(5)); };
  serve();
  {
    Client client(server_->port());
    client.send(
        http_text("POST", "/v1/completions", R"({"prompt":"abc","max_tokens":400,"stream":true})"));
    client.read_until("data: ");
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return line.find("outcome=aborted") != std::string::npos;
  }));
  EXPECT_THAT(line, HasSubstr(" prompt=3 "));
  EXPECT_THAT(line, ::testing::ContainsRegex(" completion=[1-9]"));
}

TEST_F(ServerTest, AClientThatGoesAwayBehindAPipelinedRequestIsSeen) {
  serve(false);
  {
    Client client(server_->port());
    client.send(http_text("POST", "/v1/completions", kEndless) + http_text("GET", "/health", "") +
                std::string(90000, 'x'));
    ASSERT_TRUE(eventually([&] { return engine_->stats().waiting == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return server_->num_active() == 0; }));
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  serve();
  Client client(server_->port());
  client.send(
      http_text("POST", "/v1/completions", R"({"prompt":"xyz","max_tokens":2,"stream":true})") +
      http_text("GET", "/health", "") +
      http_text("POST", "/v1/completions", R"({"prompt":"x","max_tokens":1})"));
  EXPECT_THAT(client.read().body, HasSubstr("data: [DONE]"));
  EXPECT_EQ(client.read().body, R"({"status":"ready"})");
  EXPECT_EQ(client.read().json().at("choices").at(0).at("text").as_string(), "b");
}

TEST_F(ServerTest, AnOldClientGetsAStreamWithoutChunks) {
  serve();
  Client client(server_->port());
  const std::string body = R"({"prompt":"xyz","max_tokens":2,"stream":true})";
  client.send(fmt::format(
      "POST /v1/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  const std::string all = client.read_until("never");
  EXPECT_THAT(all, HasSubstr("Connection: close"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("chunked")));
  EXPECT_THAT(all, ::testing::EndsWith("data: [DONE]\n\n"));
}

TEST_F(ServerTest, AStreamThatWaitsIsPinged) {
  options_.first_ping = milliseconds(20);
  options_.ping_interval = milliseconds(20);
  serve(false);
  Client client(server_->port());
  client.send(
      http_text("POST", "/v1/completions", R"({"prompt":"xyz","max_tokens":2,"stream":true})"));
  const std::string start = client.read_until(": ping\n\n");
  EXPECT_THAT(start, HasSubstr("HTTP/1.1 200 OK"));
  engine_->start();
  EXPECT_THAT(client.read_until("[DONE]"), HasSubstr("\"text\":\"e\""));
}

TEST_F(ServerTest, ASlowSenderIs408) {
  options_.read_timeout = milliseconds(50);
  serve();
  Client header(server_->port());
  header.send("POST /v1/completions HTTP/1.1\r\nHost:");
  EXPECT_EQ(header.read().status, 408);
  Client body(server_->port());
  body.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  const Reply reply = body.read();
  EXPECT_EQ(reply.status, 408);
  EXPECT_EQ(reply.header("connection"), "close");
}

TEST_F(ServerTest, ALargeBodyIs413EvenWhileItIsSent) {
  options_.max_body_bytes = 1000;
  serve();
  EXPECT_EQ(post("/v1/completions", std::string(1001, ' ')).status, 413);
  Client client(server_->port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n" +
              std::string(100000, 'x'));
  EXPECT_EQ(client.read().status, 413);
  Client chunked(server_->port());
  chunked.send(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
      std::string(2000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.read().status, 413);
  Client polite(server_->port());
  polite.send(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
      "2000\r\n\r\n");
  EXPECT_EQ(polite.read().status, 413);
}

TEST_F(ServerTest, Expect100IsContinued) {
  serve();
  Client client(server_->port());
  const std::string body = R"({"prompt":"xyz","max_tokens":1})";
  client.send(
      fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: "
                  "100-continue\r\nContent-Length: {}\r\n\r\n",
                  body.size()));
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(body);
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ServerTest, WhatIsNoHttpIs400) {
  serve();
  Client client(server_->port());
  client.send("hello there\r\n\r\n");
  EXPECT_EQ(client.read().status, 400);
  Client headers(server_->port());
  headers.send("GET /health HTTP/1.1\r\nx: " + std::string(40000, 'x') + "\r\n\r\n");
  EXPECT_EQ(headers.read().status, 431);
}

TEST_F(ServerTest, TooManyConnectionsAreRefused) {
  options_.max_connections = 1;
  serve();
  Client first(server_->port());
  first.send(http_text("GET", "/health", ""));
  EXPECT_EQ(first.read().status, 200);
  Client second(server_->port());
  EXPECT_EQ(second.read().status, 503);
  first.close();
  EXPECT_TRUE(eventually([&] { return call("GET", "/health").status == 200; }));
}

TEST_F(ServerTest, AClientThatDoesNotReadHoldsUpNobody) {
  setup_.max_context = 8192;
  setup_.num_blocks = 4096;
  serve();
  Client slow(server_->port());
  slow.socket().set_option(boost::asio::socket_base::receive_buffer_size(4096));
  slow.send(http_text(
      "POST",
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"x"}],"max_tokens":8000,"stream":true,"logprobs":true,)"
      R"("top_logprobs":20})"));
  // Its sequence is parked: the steps stop while it still runs.
  std::uint64_t steps = 0;
  EXPECT_TRUE(eventually([&] {
    const EngineStats stats = engine_->stats();
    std::this_thread::sleep_for(milliseconds(50));
    const bool still = stats.steps == engine_->stats().steps && stats.steps > 0;
    steps = stats.steps;
    return still;
  }));
  EXPECT_LT(steps, 8000U);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"xyz","max_tokens":3})").status, 200);
  EXPECT_TRUE(eventually([&] { return server_->num_active() == 1; }));
}

TEST_F(ServerTest, EachRequestIsLoggedOnce) {
  std::mutex mutex;
  std::vector<std::string> lines;
  options_.log_format = LogFormat::kJson;
  options_.log_sink = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  serve();
  // A line is written once its answer is out: the next request may overtake it.
  const auto has_lines = [&](std::size_t count) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return lines.size() == count;
    });
  };
  call("POST", "/v1/completions", R"({"prompt":"xyz","max_tokens":3})", "x-request-id: one\r\n");
  EXPECT_TRUE(has_lines(1));
  call("GET", "/nothing", "", "x-request-id: two\r\n");
  EXPECT_TRUE(has_lines(2));
  server_->stop(Duration{0});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0],
              HasSubstr(R"("id":"one","method":"POST","path":"/v1/completions","status":200)"));
  EXPECT_THAT(lines[0],
              HasSubstr(R"("model":"tiny","outcome":"ok","finish":"length","prompt_tokens":3)"));
  EXPECT_THAT(lines[1], HasSubstr(R"("id":"two")"));
}

}  // namespace
}  // namespace headrace::testing
