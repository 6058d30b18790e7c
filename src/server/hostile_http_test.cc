// What clients send that is unusual, or meant to harm.
#include <gmock/gmock.h>
#include <mutex>

#include "server/server.h"
#include "server/server_fixture.h"

namespace headrace::testing {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

TEST_F(ServerTest, ATargetMayHaveSchemeAndHostInFront) {
  serve();
  EXPECT_EQ(call("GET", "http://example.org/health/live?x=1").status, 200);
  EXPECT_EQ(call("GET", "HTTP://example.org:80").status, 200);  // the page
  EXPECT_EQ(call("GET", "https://example.org/nothing").status, 404);
  EXPECT_EQ(call("GET", "ftp://example.org/health/live").status, 404);
}

TEST_F(ServerTest, ABodyInAnUnknownCodingIsNotReadAsTheNextRequest) {
  serve();
  for (const char* coding :
       {"gzip", "gzip, chunked", "identity", "chunked\r\nTransfer-Encoding: chunked"}) {
    Client client(server_->port());
    client.send(
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {}\r\n\r\n",
                    coding) +
        http_text("GET", "/health/live", ""));
    const Reply reply = client.read();
    EXPECT_TRUE(reply.status == 501 || reply.status == 400) << coding << reply.status;
    EXPECT_EQ(reply.header("connection"), "close");
    EXPECT_EQ(client.read().status, 0) << coding;
  }
}

TEST_F(ServerTest, ErrorsAreJsonWhateverTheClientSent) {
  serve();
  for (const char* path : {"/\xff\xfe", "/v1/models/\xff\"", "/\xe4\xb8"}) {
    const Reply reply = call("GET", path);
    EXPECT_EQ(reply.status, 404);
    EXPECT_THAT(std::string(reply.json().at("error").at("message").as_string()),
                HasSubstr("\uFFFD"));
  }
}

TEST_F(ServerTest, ALongPathIsLoggedInPart) {
  std::mutex mutex;
  std::string line;
  options_.log_sink = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    line = text;
  };
  serve();
  EXPECT_EQ(call("GET", "/" + std::string(20000, 'a')).status, 404);
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !line.empty();
  }));
  EXPECT_LT(line.size(), 2000U);
}

TEST_F(ServerTest, AnOriginThatCouldForgeAHeaderIsRefused) {
  for (const char* origin : {"http://a\r\nSet-Cookie: x", "http://a b", "\xc3\xa9"}) {
    options_.cors_origin = origin;
    const auto server = Server::create(options_);
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(server.error().message, HasSubstr("--cors"));
  }
}

}  // namespace
}  // namespace headrace::testing
