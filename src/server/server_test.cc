#include "server/server.h"

#include <atomic>
#include <chrono>
#include <gmock/gmock.h>
#include <memory>
#include <thread>

#include "server/server_fixture.h"

namespace headrace::testing {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_code(const Reply& reply) {
  return std::string(reply.json().at("error").at("code").as_string());
}

// The text of a stream, by choice; checks the frame of every event.
std::vector<std::string> stream_texts(const std::string& body, std::size_t num_choices) {
  std::vector<std::string> texts(num_choices);
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t end = body.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    const std::string line = body.substr(at, end - at);
    at = end + 2;
    EXPECT_THAT(line, StartsWith("data: "));
    if (line == "data: [DONE]") {
      EXPECT_EQ(at, body.size());
      break;
    }
    const json::value chunk = json::parse(line.substr(6));
    for (const json::value& choice : chunk.at("choices").as_array()) {
      const json::object& object = choice.as_object();
      const json::object& holder =
          object.contains("delta") ? object.at("delta").as_object() : object;
      const json::value* text = holder.if_contains(object.contains("delta") ? "content" : "text");
      if (text != nullptr) {
        texts.at(static_cast<std::size_t>(object.at("index").as_int64())) += text->as_string();
      }
    }
  }
  return texts;
}

TEST_F(ServerTest, CompletionContinuesThePrompt) {
  serve();
  const Reply reply = post("/v1/completions", R"({"prompt":"xyz","max_tokens":4,"temperature":0})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value body = reply.json();
  EXPECT_EQ(body.at("choices").at(0).at("text").as_string(), "defg");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason").as_string(), "length");
  EXPECT_EQ(body.at("object").as_string(), "text_completion");
  EXPECT_EQ(body.at("model").as_string(), "tiny");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 3);
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 4);
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("cached_tokens").as_int64(), 0);
  EXPECT_EQ(body.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64(), 0);
  EXPECT_GE(body.at("timings").at("total_ms").as_double(),
            body.at("timings").at("ttft_ms").as_double());
  EXPECT_NE(reply.header("x-ttft-ms"), "");
  EXPECT_THAT(reply.header("x-request-id"), StartsWith("req-"));
}

TEST_F(ServerTest, ChatGoesThroughTheTemplate) {
  serve();
  // "user:hi\n>" has 9 bytes.
  const Reply reply =
      post("/v1/chat/completions",
           R"({"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":2})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json().at("choices").at(0).at("message").at("content").as_string(), "jk");
  EXPECT_EQ(reply.json().at("usage").at("prompt_tokens").as_int64(), 9);
  EXPECT_EQ(reply.json().at("object").as_string(), "chat.completion");
}

TEST_F(ServerTest, AStreamsTextIsTheAnswersText) {
  setup_.logits = nullptr;  // noise: bytes that are seldom whole characters
  serve();
  const std::string chat =
      R"("messages":[{"role":"user","content":"hi"}],"n":3,"seed":5,"max_tokens":40,"stop":["~"])";
  const std::string completion =
      R"("prompt":["a","bc"],"n":2,"seed":6,"max_tokens":40,"echo":true,"logprobs":2)";
  for (const auto& [path, fields] :
       {std::pair("/v1/chat/completions", chat), {"/v1/completions", completion}}) {
    const Reply whole = post(path, "{" + fields + "}");
    ASSERT_EQ(whole.status, 200) << whole.body;
    const Reply streamed =
        post(path, "{" + fields + R"(,"stream":true,"stream_options":{"include_usage":true}})");
    ASSERT_EQ(streamed.status, 200);
    EXPECT_EQ(streamed.header("content-type"), "text/event-stream; charset=utf-8");
    const json::value body = whole.json();
    const json::array& choices = body.at("choices").as_array();
    const std::vector<std::string> texts = stream_texts(streamed.body, choices.size());
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const json::object& choice = choices[i].as_object();
      EXPECT_EQ(choice.at("index").as_int64(), static_cast<std::int64_t>(i));
      const json::value& text =
          choice.contains("message") ? choice.at("message").at("content") : choice.at("text");
      EXPECT_EQ(texts[i], std::string(text.as_string()));
    }
  }
}

TEST_F(ServerTest, ChoicesOfAListOfPromptsStandInOrder) {
  serve();
  const Reply reply =
      post("/v1/completions", R"({"prompt":["a","bb"],"n":2,"max_tokens":1,"temperature":0})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  std::string texts;
  const json::value body = reply.json();
  for (const json::value& choice : body.at("choices").as_array()) {
    texts += choice.at("text").as_string();
  }
  EXPECT_EQ(texts, "bbcc");
  EXPECT_EQ(reply.json().at("usage").at("prompt_tokens").as_int64(), 3);
}

TEST_F(ServerTest, TheSeedInTheHeaderRepeatsTheAnswer) {
  setup_.logits = nullptr;
  serve();
  const Reply first = post("/v1/completions", R"({"prompt":"a","max_tokens":20})");
  ASSERT_EQ(first.status, 200);
  const Reply second = post(
      "/v1/completions", R"({"prompt":"a","max_tokens":20,"seed":)" + first.header("x-seed") + "}");
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(first.json().at("choices"), second.json().at("choices"));
}

TEST_F(ServerTest, EchoWithoutTokensScoresThePrompt) {
  serve();
  const Reply reply =
      post("/v1/completions", R"({"prompt":"abcd","max_tokens":0,"echo":true,"logprobs":1})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value choice = reply.json().at("choices").at(0);
  EXPECT_EQ(choice.at("text").as_string(), "abcd");
  const json::value& logprobs = choice.at("logprobs");
  EXPECT_EQ(json::serialize(logprobs.at("tokens")), R"(["a","b","c","d"])");
  EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
  // The token after one is 'b', after two 'c': the model is sure.
  EXPECT_GT(logprobs.at("token_logprobs").at(1).to_number<double>(), -0.1);
  EXPECT_EQ(json::serialize(logprobs.at("text_offset")), "[0,1,2,3]");
  EXPECT_EQ(reply.json().at("usage").at("completion_tokens").as_int64(), 0);
}

TEST_F(ServerTest, StopStringEndsAndIsLeftOut) {
  serve();
  const Reply reply =
      post("/v1/completions", R"({"prompt":"xyz","max_tokens":20,"temperature":0,"stop":"gh"})");
  EXPECT_EQ(reply.json().at("choices").at(0).at("text").as_string(), "def");
  EXPECT_EQ(reply.json().at("choices").at(0).at("finish_reason").as_string(), "stop");
  EXPECT_EQ(reply.json().at("choices").at(0).at("stop_reason").as_string(), "gh");
}

TEST_F(ServerTest, AStreamStopsWhereTheWholeAnswerDoes) {
  serve();
  for (const char* stop : {R"("gh")",
                           R"("d")",
                           R"("defg")",
                           R"(["zz","mno","no"])",
                           R"(["hX","gh"])",
                           R"("xyzd")",
                           R"("nothing")"}) {
    const std::string fields = fmt::format(R"("max_tokens":15,"temperature":0,"stop":{})", stop);
    const std::string whole = R"({"prompt":"xyz",)" + fields + "}";
    const std::string streamed = R"({"prompt":"xyz","stream":true,)" + fields + "}";
    const Reply reply = post("/v1/completions", whole);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const auto text = reply.json().at("choices").at(0).at("text").as_string();
    EXPECT_THAT(stream_texts(post("/v1/completions", streamed).body, 1), ElementsAre(text)) << stop;
  }
}

TEST_F(ServerTest, TgiFormsAnswer) {
  serve();
  const Reply whole =
      post("/generate", R"({"inputs":"xyz","parameters":{"max_new_tokens":3,"details":true}})");
  ASSERT_EQ(whole.status, 200) << whole.body;
  EXPECT_EQ(whole.json().at("generated_text").as_string(), "def");
  EXPECT_EQ(whole.json().at("details").at("finish_reason").as_string(), "length");
  EXPECT_EQ(whole.json().at("details").at("tokens").as_array().size(), 3);
  const Reply stream =
      post("/generate_stream", R"({"inputs":"xyz","parameters":{"max_new_tokens":3}})");
  ASSERT_EQ(stream.status, 200);
  EXPECT_THAT(stream.body, HasSubstr(R"("token":{"id":100,"text":"d")"));
  EXPECT_THAT(stream.body, HasSubstr(R"("generated_text":"def")"));
}

TEST_F(ServerTest, PromptRoutesShowWhatTheModelReads) {
  serve();
  const std::string messages = R"({"messages":[{"role":"user","content":"h"}]})";
  EXPECT_EQ(post("/tokenize", R"({"prompt":"ab","return_token_strs":true})")
                .json()
                .at("token_strs")
                .as_array()
                .size(),
            2);
  EXPECT_EQ(post("/tokenize", R"({"prompt":"ab"})").body,
            R"({"tokens":[97,98],"count":2,"max_model_len":512})");
  EXPECT_EQ(post("/tokenize", messages).json().at("count").as_int64(), 8);
  EXPECT_EQ(post("/detokenize", R"({"tokens":[97,98]})").body, R"({"prompt":"ab"})");
  EXPECT_EQ(post("/detokenize", R"({"tokens":[9999]})").status, 400);
  EXPECT_EQ(post("/detokenize", "{}").status, 400);
  EXPECT_EQ(post("/apply-template", messages).body, "{\"prompt\":\"user:h\\n>\"}");
  const Reply chat = post("/v1/chat/completions/render", messages);
  EXPECT_EQ(chat.json().at("token_ids").as_array().size(), 8) << chat.body;
  const Reply completions =
      post("/v1/completions/render", R"({"prompt":["a","bc"],"max_tokens":7})");
  EXPECT_EQ(completions.json().at(1).at("token_ids").as_array().size(), 2) << completions.body;
  EXPECT_EQ(completions.json().at(0).at("sampling_params").at("max_tokens").as_int64(), 7);
}

TEST_F(ServerTest, WrongRequestsGetTheirStatus) {
  serve();
  const std::tuple<const char*, const char*, const char*, int> cases[] = {
      {"GET", "/nothing", "", 404},
      {"POST", "/admin/batching", "{}", 404},
      {"GET", "/v1/chat/completions", "", 405},
      {"DELETE", "/health", "", 405},
      {"OPTIONS", "/health", "", 405},
      {"POST", "/v1/completions", "{", 400},
      {"POST", "/v1/completions", "[]", 400},
      {"POST", "/v1/completions", "{}", 400},
      {"POST", "/v1/completions", R"({"prompt":""})", 400},
      {"POST", "/v1/completions", "{\"prompt\":\"\xff\"}", 400},
      {"POST", "/v1/completions", R"({"prompt":"a","temperature":NaN})", 400},
      {"POST", "/v1/completions", R"({"prompt":"a","model":"other"})", 404},
      {"POST", "/v1/chat/completions", R"({"messages":[]})", 400},
      {"POST",
       "/v1/chat/completions",
       R"({"model":"raw","messages":[{"role":"user","content":"x"}]})",
       400},
      {"GET", "/v1/models/other", "", 404},
  };
  for (const auto& [method, path, body, status] : cases) {
    const Reply reply = call(method, path, body);
    EXPECT_EQ(reply.status, status) << method << " " << path << " " << body;
    EXPECT_TRUE(reply.json().at("error").as_object().contains("param"));
    EXPECT_NE(reply.header("x-request-id"), "");
  }
  EXPECT_EQ(call("GET", "/v1/completions").header("allow"), "POST");
  EXPECT_EQ(call("PUT", "/health").header("allow"), "GET, HEAD");
  EXPECT_EQ(error_code(post("/v1/completions", R"({"prompt":"a","model":"other"})")),
            "model_not_found");
}

TEST_F(ServerTest, APromptLongerThanTheContextIsRefused) {
  serve();
  const Reply reply = post("/v1/completions", R"({"prompt":")" + std::string(600, 'x') + R"("})");
  EXPECT_EQ(reply.status, 400) << reply.body;
  // Long enough for the prompt, too short for the answer: that ends at the context.
  const Reply cut =
      post("/v1/completions", R"({"max_tokens":100,"prompt":")" + std::string(500, 'x') + R"("})");
  ASSERT_EQ(cut.status, 200) << cut.body;
  EXPECT_EQ(cut.json().at("choices").at(0).at("finish_reason").as_string(), "length");
  EXPECT_EQ(cut.json().at("usage").at("completion_tokens").as_int64(), 12);
}

// The longest token of the fixture's vocabulary has ten bytes.
TEST_F(ServerTest, APromptFarTooLongIsRefusedBeforeItIsEncoded) {
  serve();
  const std::string text(100'000, 'x');
  const std::string message = R"([{"role":"user","content":")" + text + R"("}])";
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"/v1/completions", R"({"prompt":")" + text + R"("})"},
      {"/v1/chat/completions", R"({"messages":)" + message + "}"},
      {"/generate", R"({"inputs":")" + text + R"("})"}};
  for (const auto& [path, body] : requests) {
    const Reply reply = post(path, body);
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_THAT(reply.body, HasSubstr("the prompt has at least 1000")) << path;
    EXPECT_THAT(reply.body, HasSubstr("the context 512")) << path;
  }
  const Reply tokens = post("/tokenize", R"({"prompt":")" + text + R"("})");
  EXPECT_EQ(tokens.json().at("count").as_int64(), 100'000);
}

TEST_F(ServerTest, LogitsThatAreNoNumbersAreAnErrorOfTheirRequestAlone) {
  const auto damaged = std::make_shared<std::atomic<bool>>(false);
  setup_.logits = [damaged](std::span<const TokenId> prefix, std::span<float> logits) {
    say_alphabet(prefix, logits);
    if (prefix[0] == '!' && *damaged) {
      logits[7] = std::numeric_limits<float>::quiet_NaN();
    }
  };
  setup_.hook = [](std::span<const SequenceRows>) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  serve();
  Client stream(server_->port());
  stream.send(
      http_text("POST", "/v1/completions", R"({"prompt":"!abc","max_tokens":400,"stream":true})"));
  const std::string begun = stream.read_until("data: ");
  EXPECT_THAT(begun, HasSubstr("HTTP/1.1 200 OK"));
  *damaged = true;
  const std::string rest = stream.read_until("[DONE]");
  EXPECT_THAT(rest, HasSubstr(R"(data: {"error":{"message":"the model's logits are not numbers)"));
  EXPECT_THAT(rest, HasSubstr("data: [DONE]"));
  const Reply whole = post("/v1/completions", R"({"prompt":"!abc","max_tokens":8})");
  EXPECT_EQ(whole.status, 500);
  EXPECT_THAT(whole.body, HasSubstr("the model's logits are not numbers"));
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"abcd","max_tokens":8})").status, 200);
  EXPECT_THAT(metrics_->text(),
              HasSubstr("headrace_requests_total{model_name=\"tiny\",outcome=\"failed\"} 2\n"));
}

TEST_F(ServerTest, UnknownFieldsAreNamedInAHeaderAndCannotForgeOne) {
  serve();
  const Reply reply = post(
      "/v1/completions", R"({"prompt":"a","max_tokens":1,"service_tier":"x","a\r\nx-evil: 1":2})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.header("x-ignored-fields"), "service_tier, a??x-evil:?1");
  EXPECT_EQ(reply.header("x-evil"), "");
}

TEST_F(ServerTest, RequestIdsAreEchoedWherePlain) {
  serve();
  EXPECT_EQ(call("GET", "/health", "", "x-request-id: my-id\r\n").header("x-request-id"), "my-id");
  EXPECT_THAT(call("GET", "/health", "", "x-request-id: two words\r\n").header("x-request-id"),
              StartsWith("req-"));
}

TEST_F(ServerTest, InfoRoutesAnswer) {
  serve();
  EXPECT_EQ(call("GET", "/health/live").status, 200);
  EXPECT_EQ(call("GET", "/health/ready").status, 200);
  EXPECT_EQ(call("GET", "/health").body, R"({"status":"ready"})");
  EXPECT_EQ(call("GET", "/version").body, R"({"version":"0.1.0"})");
  EXPECT_EQ(call("GET", "/v1/models").json().at("data").at(0).at("id").as_string(), "tiny");
  EXPECT_EQ(call("GET", "/v1/models/raw").json().at("id").as_string(), "raw");
  EXPECT_THAT(call("GET", "/").body, HasSubstr("<title>Headrace</title>"));
  const Reply head = call("HEAD", "/health");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), "18");
  EXPECT_EQ(head.body, "");
}

TEST_F(ServerTest, TheDescriptionNamesRoutesThatExist) {
  serve();
  const json::value document = call("GET", "/openapi.json").json();
  EXPECT_EQ(document.at("paths").as_object().size(), 18);
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& method : path.value().as_object()) {
      const std::string name = method.key() == "get" ? "GET" : "POST";
      const Reply reply = call(name, path.key(), "");
      EXPECT_NE(reply.status, 405) << path.key();
      EXPECT_TRUE(reply.status != 404 || path.key() == "/v1/models/{id}") << path.key();
    }
  }
}

TEST_F(ServerTest, MetricsCountWhatHappened) {
  serve();
  post("/v1/completions", R"({"prompt":"abc","max_tokens":4})");
  EXPECT_TRUE(eventually([&] {
    const std::string text = call("GET", "/metrics").body;
    return text.find("headrace_requests_total{model_name=\"tiny\",outcome=\"ok\"} 1\n") !=
               std::string::npos &&
           text.find("vllm:generation_tokens_total{model_name=\"tiny\"} 4\n") != std::string::npos;
  }));
}

}  // namespace
}  // namespace headrace::testing
