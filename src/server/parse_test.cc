#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "server/generation_request.h"
#include "server/json_body.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kVocab = 300;

using ParseFn = Result<GenerationRequest> (*)(const boost::json::object&, int);

Result<GenerationRequest> parse(ParseFn parse_fn, std::string_view text) {
  HR_ASSIGN_OR_RETURN(const boost::json::object body, parse_json_object(text));
  return parse_fn(body, kVocab);
}

Result<GenerationRequest> completion(std::string_view fields) {
  return parse(parse_completion_request, R"({"prompt":"hi",)" + std::string(fields) + "}");
}

Result<GenerationRequest> chat(std::string_view fields) {
  return parse(parse_chat_request,
               R"({"messages":[{"role":"user","content":"hi"}],)" + std::string(fields) + "}");
}

Result<GenerationRequest> chat_with(std::string_view messages) {
  return parse(parse_chat_request, R"({"messages":)" + std::string(messages) + "}");
}

std::string message_of(const Result<GenerationRequest>& result) {
  return result ? "accepted" : result.error().message;
}
std::string param_of(const Result<GenerationRequest>& result) {
  return result ? "accepted" : result.error().param;
}

TEST(JsonBody, RefusesWhatIsNoStrictJson) {
  for (const char* text : {"",
                           "{",
                           "{} x",
                           "{'a':1}",
                           "{\"a\":NaN}",
                           "{\"a\":Infinity}",
                           "{\"a\":-Infinity}",
                           "{\"a\":01}",
                           "{\"a\":1,}",
                           "[1,]",
                           "nul",
                           "\"\\ud800\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\x01\""}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
}

TEST(JsonBody, RefusesAKeyThatStandsTwice) {
  const auto result = parse_json(R"({"a":{"b":1,"c":2,"b":3}})");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("the key \"b\" stands twice"));
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":2}])"));
}

TEST(JsonBody, RefusesNumbersBeyondADouble) {
  EXPECT_FALSE(parse_json("{\"a\":1e999}"));
  EXPECT_FALSE(parse_json("[-1e400]"));
  EXPECT_TRUE(parse_json("[1e300, 18446744073709551616]"));
}

TEST(JsonBody, RefusesDeepNesting) {
  EXPECT_FALSE(parse_json(std::string(100000, '[')));
  EXPECT_THAT(parse_json(std::string(65, '[') + std::string(65, ']')).error().message,
              HasSubstr("deeper than 64"));
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')));
}

TEST(ParseCompletion, DefaultsAreOpenAIs) {
  const auto request = parse(parse_completion_request, R"({"prompt":"hi"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->max_tokens, 16);
  EXPECT_EQ(request->n, 1);
  EXPECT_FALSE(request->stream);
  EXPECT_FALSE(request->wants_logprobs());
  EXPECT_FLOAT_EQ(request->sampling.temperature, 1.0F);
  EXPECT_THAT(request->ignored_fields, SizeIs(0));
}

TEST(ParseCompletion, EveryFieldArrives) {
  const auto request =
      completion(R"("temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"typical_p":0.8,"seed":-7,
      "n":3,"stop":["a","b"],"stop_token_ids":[1,2],"max_tokens":5,"min_tokens":2,"ignore_eos":true,
      "frequency_penalty":-1,"presence_penalty":2,"repetition_penalty":1.5,"logit_bias":{"7":-100,"8":3.5},"logprobs":4,
      "echo":true,"stream":true,"stream_options":{"include_usage":true},"user":"u","priority":-3,"deadline_ms":1500,
      "cache_salt":"s")");
  ASSERT_TRUE(request) << message_of(request);
  EXPECT_FLOAT_EQ(request->sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(request->sampling.top_p, 0.9F);
  EXPECT_EQ(request->sampling.top_k, 40);
  EXPECT_FLOAT_EQ(request->sampling.min_p, 0.05F);
  EXPECT_FLOAT_EQ(request->sampling.typical_p, 0.8F);
  EXPECT_EQ(request->sampling.seed, static_cast<std::uint64_t>(-7));
  EXPECT_EQ(request->n, 3);
  EXPECT_THAT(request->stop, ElementsAre("a", "b"));
  EXPECT_THAT(request->stop_token_ids, ElementsAre(1, 2));
  EXPECT_EQ(request->max_tokens, 5);
  EXPECT_EQ(request->min_tokens, 2);
  EXPECT_TRUE(request->ignore_eos);
  EXPECT_FLOAT_EQ(request->sampling.frequency_penalty, -1.0F);
  EXPECT_FLOAT_EQ(request->sampling.presence_penalty, 2.0F);
  EXPECT_FLOAT_EQ(request->sampling.repetition_penalty, 1.5F);
  ASSERT_THAT(request->sampling.logit_bias, SizeIs(2));
  EXPECT_EQ(request->sampling.logit_bias[1].token, 8);
  EXPECT_EQ(request->sampling.num_top_logprobs, 4);
  EXPECT_TRUE(request->echo);
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_EQ(request->priority, -3);
  EXPECT_EQ(request->deadline_ms, 1500);
  EXPECT_EQ(request->cache_salt, "s");
  EXPECT_THAT(request->ignored_fields, SizeIs(0));
}

TEST(ParseCompletion, WrongTypesAndRangesNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":"hot")", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":101)", "temperature"},
      {R"("top_p":0)", "top_p"},
      {R"("top_p":1.01)", "top_p"},
      {R"("top_k":1.5)", "top_k"},
      {R"("top_k":-2)", "top_k"},
      {R"("min_p":-1)", "min_p"},
      {R"("typical_p":2)", "typical_p"},
      {R"("seed":1e30)", "seed"},
      {R"("seed":18446744073709551615)", "seed"},
      {R"("n":0)", "n"},
      {R"("n":17)", "n"},
      {R"("n":true)", "n"},
      {R"("stop":7)", "stop"},
      {R"("stop":["a",1])", "stop"},
      {R"("stop":"")", "stop"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
       "stop"},
      {R"("stop_token_ids":[300])", "stop_token_ids"},
      {R"("stop_token_ids":[-1])", "stop_token_ids"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("max_tokens":"5")", "max_tokens"},
      {R"("max_tokens":99999999999)", "max_tokens"},
      {R"("max_tokens":3,"min_tokens":4)", "min_tokens"},
      {R"("ignore_eos":1)", "ignore_eos"},
      {R"("frequency_penalty":2.5)", "frequency_penalty"},
      {R"("presence_penalty":-3)", "presence_penalty"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("logit_bias":[1])", "logit_bias"},
      {R"("logit_bias":{"300":1})", "logit_bias"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"5":1,"05":1})", "logit_bias"},
      {R"("logit_bias":{"00":1})", "logit_bias"},
      {R"("logit_bias":{"-0":1})", "logit_bias"},
      {R"("logit_bias":{"":1})", "logit_bias"},
      {R"("logit_bias":{"1":101})", "logit_bias"},
      {R"("logit_bias":{"1":"a"})", "logit_bias"},
      {R"("logprobs":21)", "logprobs"},
      {R"("logprobs":true)", "logprobs"},
      {R"("echo":"yes")", "echo"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options"},
      {R"("user":1)", "user"},
      {R"("priority":0.5)", "priority"},
      {R"("deadline_ms":0)", "deadline_ms"},
      {R"("cache_salt":1)", "cache_salt"},
      {R"("best_of":2)", "best_of"},
      {R"("model":1)", "model"},
  };
  for (const auto& [fields, param] : cases) {
    const auto request = completion(fields);
    EXPECT_EQ(param_of(request), param) << fields << " -> " << message_of(request);
  }
}

TEST(ParseCompletion, NullCountsAsAbsent) {
  const auto request =
      completion(R"("temperature":null,"stop":null,"logprobs":null,"stream_options":null)");
  ASSERT_TRUE(request) << message_of(request);
  EXPECT_FLOAT_EQ(request->sampling.temperature, 1.0F);
}

TEST(ParseCompletion, UnknownFieldsAreNamedNotRefused) {
  const auto request = completion(R"("service_tier":"auto","metadata":{"a":1})");
  ASSERT_TRUE(request) << message_of(request);
  EXPECT_THAT(request->ignored_fields, ElementsAre("service_tier", "metadata"));
}

TEST(ParseCompletion, PromptTakesFourForms) {
  const auto prompts = [](const char* prompt) {
    return parse(parse_completion_request, R"({"prompt":)" + std::string(prompt) + "}");
  };
  EXPECT_EQ(std::get<std::string>(prompts(R"("a")")->prompts.at(0)), "a");
  EXPECT_EQ(std::get<std::string>(prompts(R"(["a","b"])")->prompts.at(1)), "b");
  EXPECT_THAT(std::get<std::vector<TokenId>>(prompts("[1,2]")->prompts.at(0)), ElementsAre(1, 2));
  EXPECT_THAT(std::get<std::vector<TokenId>>(prompts("[[1],[2,3]]")->prompts.at(1)),
              ElementsAre(2, 3));
  for (const char* bad : {"\"\"",
                          "[]",
                          "[\"\"]",
                          "[[]]",
                          "[1,\"a\"]",
                          "[\"a\",[1]]",
                          "[300]",
                          "[-1]",
                          "[1.5]",
                          "{}",
                          "7",
                          "null",
                          "[[[1]]]",
                          "[null]"}) {
    EXPECT_EQ(param_of(prompts(bad)), "prompt") << bad;
  }
}

TEST(ParseCompletion, PromptsTimesNIsBounded) {
  std::string prompts = R"(["x")";
  for (int i = 1; i < 17; ++i) {
    prompts += R"(,"x")";
  }
  EXPECT_TRUE(parse(parse_completion_request, R"({"n":3,"prompt":)" + prompts + "]}"));
  EXPECT_EQ(param_of(parse(parse_completion_request, R"({"n":4,"prompt":)" + prompts + "]}")), "n");
}

TEST(ParseAny, FormsThatAreNotBuiltAreRefused) {
  for (const char* fields : {R"("response_format":{"type":"json_object"})",
                             R"("response_format":{"type":"json_schema","json_schema":{}})",
                             R"("response_format":"json")",
                             R"("guided_json":{})",
                             R"("guided_regex":"a")",
                             R"("guided_future":1)",
                             R"("structured_outputs":{})",
                             R"("suffix":"x")",
                             R"("functions":[])",
                             R"("modalities":["text","audio"])"}) {
    EXPECT_FALSE(chat(fields)) << fields;
    EXPECT_FALSE(completion(fields)) << fields;
  }
  EXPECT_TRUE(chat(R"("response_format":{"type":"text"})"));
  EXPECT_TRUE(chat(R"("guided_json":null,"modalities":["text"],"suffix":null)"));
  EXPECT_EQ(chat(R"("guided_json":{})").error().code, ErrorCode::kUnsupported);
}

TEST(ParseChat, MessagesAreChecked) {
  for (const char* bad : {"[]",
                          "{}",
                          "\"hi\"",
                          "[1]",
                          "[{}]",
                          R"([{"role":"user"}])",
                          R"([{"role":"user","content":7}])",
                          R"([{"role":"alien","content":"x"}])",
                          R"([{"role":1,"content":"x"}])",
                          R"([{"role":"user","content":null}])",
                          R"([{"role":"user","content":["x"]}])",
                          R"([{"role":"user","content":[{"type":"text"}]}])",
                          R"([{"role":"user","content":[{"text":"x"}]}])"}) {
    EXPECT_FALSE(chat_with(bad)) << bad;
  }
  EXPECT_EQ(param_of(chat_with(R"([{"role":"user","content":"a"},{"role":"user"}])")),
            "messages[1]");
  EXPECT_EQ(param_of(parse(parse_chat_request, "{}")), "messages");
}

TEST(ParseChat, TextPartsBecomeOneString) {
  const auto request = chat_with(
      R"([{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  ASSERT_TRUE(request) << message_of(request);
  const auto& message = std::get<ChatInput>(request->prompts.at(0)).messages.at(0).as_object();
  EXPECT_EQ(message.at("content").as_string(), "a\nb");
  EXPECT_EQ(message.at("role").as_string(), "system");
}

TEST(ParseChat, ImagePartsAreRefusedByName) {
  const auto request =
      chat_with(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(request.error().message, HasSubstr("image_url"));
}

TEST(ParseChat, ToolsMayBeShownButNotCalled) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  EXPECT_EQ(param_of(chat(tools)), "tools");
  EXPECT_EQ(param_of(chat(tools + R"(,"tool_choice":"auto")")), "tools");
  EXPECT_EQ(param_of(chat(tools + R"(,"tool_choice":"required")")), "tool_choice");
  EXPECT_EQ(param_of(chat(tools + R"(,"tool_choice":{"type":"function","function":{"name":"f"}})")),
            "tool_choice");
  EXPECT_EQ(param_of(chat(R"("tools":[{"type":"web_search"}],"tool_choice":"none")")), "tools");
  const auto request = chat(tools + R"(,"tool_choice":"none")");
  ASSERT_TRUE(request) << message_of(request);
  EXPECT_THAT(std::get<ChatInput>(request->prompts.at(0)).tools, SizeIs(1));
  EXPECT_TRUE(chat(R"("tools":[],"tool_choice":"auto")"));
}

TEST(ParseChat, LimitsAndLogprobsAreChats) {
  EXPECT_EQ(chat(R"("user":"u")")->max_tokens, std::nullopt);
  EXPECT_EQ(chat(R"("max_tokens":5,"max_completion_tokens":7)")->max_tokens, 7);
  EXPECT_EQ(chat(R"("logprobs":true)")->sampling.num_top_logprobs, 0);
  EXPECT_EQ(chat(R"("logprobs":true,"top_logprobs":20)")->sampling.num_top_logprobs, 20);
  EXPECT_EQ(param_of(chat(R"("logprobs":true,"top_logprobs":21)")), "top_logprobs");
  EXPECT_EQ(param_of(chat(R"("top_logprobs":2)")), "top_logprobs");
  EXPECT_EQ(param_of(chat(R"("logprobs":3)")), "logprobs");
  EXPECT_EQ(param_of(chat(R"("echo":true)")), "echo");
}

TEST(ParseTgi, DrawsOnlyWhenAskedTo) {
  const auto tgi = [](const char* parameters) {
    return parse(parse_tgi_request,
                 R"({"inputs":"hi","parameters":)" + std::string(parameters) + "}");
  };
  EXPECT_FLOAT_EQ(tgi("{}")->sampling.temperature, 0.0F);
  EXPECT_EQ(tgi("{}")->max_tokens, 100);
  EXPECT_FLOAT_EQ(tgi(R"({"do_sample":true})")->sampling.temperature, 1.0F);
  EXPECT_FLOAT_EQ(tgi(R"({"temperature":0.5})")->sampling.temperature, 0.5F);
  EXPECT_EQ(tgi(R"({"max_new_tokens":3,"top_n_tokens":2})")->sampling.num_top_logprobs, 2);
  for (const char* bad : {R"({"max_new_tokens":0})",
                          R"({"temperature":0})",
                          R"({"grammar":{}})",
                          R"({"best_of":2})",
                          R"({"watermark":true})",
                          R"({"truncate":5})",
                          "[]"}) {
    EXPECT_FALSE(tgi(bad)) << bad;
  }
  EXPECT_EQ(param_of(tgi(R"({"max_new_tokens":0})")), "parameters.max_new_tokens");
  EXPECT_FALSE(parse(parse_tgi_request, R"({"inputs":""})"));
  EXPECT_FALSE(parse(parse_tgi_request, R"({"prompt":"x"})"));
}

}  // namespace
}  // namespace headrace
