#include "server/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/json_text.h"
#include "server/api_error.h"
#include "server/request_log.h"
#include "support/byte_tokenizer.h"

namespace headrace {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

TEST(ApiError, StatusFollowsTheCode) {
  const std::pair<ErrorCode, int> cases[] = {{ErrorCode::kInvalidArgument, 400},
                                             {ErrorCode::kUnsupported, 400},
                                             {ErrorCode::kNotFound, 404},
                                             {ErrorCode::kExhausted, 429},
                                             {ErrorCode::kUnavailable, 503},
                                             {ErrorCode::kCancelled, 503},
                                             {ErrorCode::kDeadline, 504},
                                             {ErrorCode::kCorrupt, 500},
                                             {ErrorCode::kInternal, 500}};
  for (const auto& [code, status] : cases) {
    EXPECT_EQ(to_api_error(Error{code, "m", ""}).status, status);
  }
}

TEST(ApiError, BodyHasTheFourFields) {
  EXPECT_EQ(
      bad_request("no", "n").to_json(),
      R"({"error":{"message":"no","type":"invalid_request_error","param":"n","code":"invalid_value"}})");
  EXPECT_EQ(
      api_error(503, "loading").to_json(),
      R"({"error":{"message":"loading","type":"service_unavailable_error","param":null,"code":"unavailable"}})");
}

class AnswerTest : public ::testing::Test {
 protected:
  std::unique_ptr<AnswerFormat> format() {
    return make_answer_format({"id-1", 123, "tiny", request_, *tokenizer_});
  }
  static TokenEvent token(char c, std::string text) {
    TokenEvent event;
    event.token.token = static_cast<unsigned char>(c);
    event.token.logprob = -0.5F;
    event.piece = std::string(1, c);
    event.text = std::move(text);
    return event;
  }
  static json::object first_event(const std::string& out) {
    const std::size_t end = out.find("\n\n");
    return json::parse(out.substr(6, end - 6)).as_object();
  }

  GenerationRequest request_;
  std::shared_ptr<const Tokenizer> tokenizer_ = testing_tokenizer();

 private:
  static std::shared_ptr<const Tokenizer> testing_tokenizer() {
    return headrace::testing::make_byte_tokenizer();
  }
};

TEST_F(AnswerTest, UsageCountsAPromptOnceForItsChoices) {
  std::vector<Choice> choices(4);
  for (int i = 0; i < 4; ++i) {
    choices[i].prompt_idx = i / 2;
    choices[i].usage = {.prompt_tokens = 10 + i / 2, .cached_tokens = i, .completion_tokens = 5};
  }
  const AnswerTotals totals = totals_of(choices);
  EXPECT_EQ(totals.usage.prompt_tokens, 21);
  EXPECT_EQ(totals.usage.cached_tokens, 0 + 2);
  EXPECT_EQ(totals.usage.completion_tokens, 20);
}

TEST_F(AnswerTest, LegacyOffsetsCountCharactersNotBytes) {
  request_.form = ApiForm::kCompletions;
  request_.sampling.num_top_logprobs = 0;
  Choice choice;
  choice.finish = FinishReason::kStop;
  choice.text = "\xc3\xa9x";
  choice.tokens = {token('\xc3', ""), token('\xa9', "\xc3\xa9"), token('x', "x")};
  const json::value body = json::parse(format()->whole({choice}, {}));
  const json::value& logprobs = body.at("choices").at(0).at("logprobs");
  EXPECT_EQ(json::serialize(logprobs.at("text_offset")), "[0,1,1]");
  EXPECT_EQ(logprobs.at("tokens").as_array().size(), 3);
  EXPECT_EQ(json_text(logprobs.at("token_logprobs")), "[-0.5,-0.5,-0.5]");
}

TEST_F(AnswerTest, ChatLogprobsCarryTheBytesOfHalfCharacters) {
  request_.form = ApiForm::kChat;
  request_.sampling.num_top_logprobs = 1;
  TokenEvent event = token('\xc3', "");
  event.token.top = {{0xC3, -0.5F}};
  Choice choice;
  std::string out;
  format()->event(choice, event, nullptr, out);
  const json::object chunk = first_event(out);
  const json::value& entry = chunk.at("choices").at(0).at("logprobs").at("content").at(0);
  EXPECT_EQ(json::serialize(entry.at("bytes")), "[195]");
  EXPECT_EQ(entry.at("token").as_string(), "\xEF\xBF\xBD");
  EXPECT_EQ(json::serialize(entry.at("top_logprobs").at(0).at("bytes")), "[195]");
}

TEST_F(AnswerTest, TokensWithoutTextMakeNoChunk) {
  request_.form = ApiForm::kChat;
  Choice choice;
  std::string out;
  format()->event(choice, token('a', ""), nullptr, out);
  EXPECT_EQ(out, "");
}

TEST_F(AnswerTest, TimingsStandInTheLastChunkAlone) {
  request_.form = ApiForm::kChat;
  Choice choice;
  TokenEvent last = token('a', "a");
  last.finish = FinishReason::kLength;
  const AnswerTotals totals{{.prompt_tokens = 1}, {1, 2, 3}};
  std::string out;
  format()->event(choice, last, &totals, out);
  format()->end(totals, out);
  EXPECT_THAT(out, HasSubstr("\"finish_reason\":\"length\""));
  EXPECT_THAT(
      out,
      HasSubstr(
          "\"timings\":{\"queue_ms\":1.0,\"ttft_ms\":2.0,\"total_ms\":3.0}}\n\ndata: [DONE]\n\n"));

  request_.include_usage = true;
  out.clear();
  format()->event(choice, last, &totals, out);
  EXPECT_THAT(out, ::testing::Not(HasSubstr("timings")));
  out.clear();
  format()->end(totals, out);
  EXPECT_THAT(out, HasSubstr("\"choices\":[],\"usage\":{\"prompt_tokens\":1,"));
  EXPECT_THAT(out, HasSubstr("timings"));
}

TEST_F(AnswerTest, StopReasonNamesWhatTheClientAskedFor) {
  request_.stop = {"END", "7"};
  request_.stop_token_ids = {9};
  Choice choice;
  const auto reason = [&](const char* text) {
    choice.stop_reason = text;
    return json::serialize(stop_reason_json(choice, request_));
  };
  EXPECT_EQ(reason("END"), "\"END\"");
  EXPECT_EQ(reason("7"), "\"7\"");
  EXPECT_EQ(reason("9"), "9");
  EXPECT_EQ(reason("256"), "null");  // the model's own end
  EXPECT_EQ(reason(""), "null");
}

TEST_F(AnswerTest, InfiniteLogprobsStayJson) {
  EXPECT_EQ(finite_logprob(-std::numeric_limits<float>::infinity()), -9999.0);
}

TEST(RequestLog, AClientsPathCannotForgeALine) {
  RequestLog log;
  log.id = "i";
  log.method = "GET";
  log.path = "/x\nrequest id=forged";
  log.status = 404;
  EXPECT_EQ(format_log(log, LogFormat::kText),
            R"(request id=i GET "/x\nrequest id=forged" status=404 total_ms=0.0)");
  EXPECT_THAT(format_log(log, LogFormat::kJson), HasSubstr(R"("path":"/x\nrequest id=forged")"));
}

}  // namespace
}  // namespace headrace
