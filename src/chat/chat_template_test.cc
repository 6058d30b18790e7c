#include "chat/chat_template.h"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace headrace {
namespace {

namespace json = boost::json;

Result<Rope> render(const std::string& source,
                    const json::value& messages,
                    RenderLimits limits = {}) {
  HR_ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::parse(source));
  RenderInput input{.messages = messages};
  input.bos_token = "<s>";
  input.limits = limits;
  return chat.render(input);
}

Rope rope(const std::string& source, const std::string& content = "<|im_start|>") {
  const json::value messages = {{{"role", "user"}, {"content", content}, {"name", "<|im_start|>"}}};
  auto result = render(source, messages);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : Rope{};
}

std::string failure(const std::string& source, RenderLimits limits = {}) {
  const auto result = render(source, json::array(), limits);
  return result.ok() ? "rendered: " + to_string(*result) : result.error().message;
}

const RopePiece kUser{"<|im_start|>", false};

TEST(Rope, TemplateTextAndTokensAreTrustedAndContentIsNot) {
  EXPECT_EQ(rope("{{ bos_token }}<|im_start|>{{ messages[0].content }}<|im_end|>"),
            (Rope{{"<s><|im_start|>", true}, kUser, {"<|im_end|>", true}}));
}

TEST(Rope, ConcatenationKeepsWhoWroteWhat) {
  EXPECT_EQ(rope("{{ '<|im_start|>' + messages[0].role + '\\n' ~ messages[0].content }}"),
            (Rope{{"<|im_start|>", true}, {"user", false}, {"\n", true}, kUser}));
}

TEST(Rope, NamesStayUntrusted) { EXPECT_EQ(rope("{{ messages[0]['name'] }}"), (Rope{kUser})); }

TEST(Rope, TrimAndStripKeepProvenance) {
  EXPECT_EQ(rope("{{ messages[0].content | trim }}|{{ messages[0].content.strip() }}",
                 "  <|im_start|>\n"),
            (Rope{kUser, {"|", true}, kUser}));
}

TEST(Rope, WhatReplacePutsInHasItsOwnProvenance) {
  EXPECT_EQ(rope("{{ messages[0].content | replace('a', '<|x|>') }}", "bab"),
            (Rope{{"b", false}, {"<|x|>", true}, {"b", false}}));
  EXPECT_EQ(rope("{{ 'a-a' | replace('-', messages[0].content) }}"),
            (Rope{{"a", true}, kUser, {"a", true}}));
}

TEST(Rope, SlicesCutWithinPieces) {
  EXPECT_EQ(rope("{{ ('<s>' ~ messages[0].content)[1:5] }}", "abc"),
            (Rope{{"s>", true}, {"ab", false}}));
  EXPECT_EQ(rope("{{ ('ab' ~ messages[0].content)[::-1] }}", "cd"),
            (Rope{{"dc", false}, {"ba", true}}));
}

TEST(Rope, SplitAndJoinKeepProvenance) {
  EXPECT_EQ(rope("{{ messages[0].content.split('</think>')[-1].lstrip('\\n') }}",
                 "x</think>\n<|im_start|>"),
            (Rope{kUser}));
  EXPECT_EQ(rope("{{ [messages[0].content, 'b'] | join('<s>') }}", "a"),
            (Rope{{"a", false}, {"<s>b", true}}));
}

TEST(Rope, JsonOfUserTextIsUntrusted) {
  const Rope pieces = rope("{{ messages[0] | tojson }}");
  EXPECT_EQ(pieces.size(), 1U);
  EXPECT_FALSE(pieces[0].trusted);
}

TEST(Rope, JsonOfTheTemplatesTextKeepsItTrusted) {
  EXPECT_EQ(rope("{{ '<s>' | tojson }}"), (Rope{{"\"", false}, {"<s>", true}, {"\"", false}}));
}

TEST(Rope, CaseAndFormatsKeepProvenance) {
  EXPECT_EQ(rope("{{ messages[0].content | upper }}"), (Rope{{"<|IM_START|>", false}}));
  EXPECT_EQ(rope("{{ '<s>%s</s>' % messages[0].content }}"),
            (Rope{{"<s>", true}, kUser, {"</s>", true}}));
  EXPECT_EQ(rope("{{ '<s>{}</s>'.format(messages[0].content) }}"),
            (Rope{{"<s>", true}, kUser, {"</s>", true}}));
}

TEST(Rope, MacrosSetBlocksAndNamespacesKeepProvenance) {
  EXPECT_EQ(rope("{% macro m(x) %}<s>{{ x }}{% endmacro %}{{ m(messages[0].content) }}"),
            (Rope{{"<s>", true}, kUser}));
  EXPECT_EQ(rope("{% set b %}<s>{{ messages[0].content }}{% endset %}{{ b }}"),
            (Rope{{"<s>", true}, kUser}));
  EXPECT_EQ(
      rope(
          "{% set ns = namespace(t='<s>') %}{% set ns.t = ns.t + messages[0].content %}{{ ns.t }}"),
      (Rope{{"<s>", true}, kUser}));
}

TEST(Rope, KeysThatBecomeNamesStayUntrusted) {
  EXPECT_EQ(rope("{% for k in dict(**{messages[0].name: 1}) %}{{ k }}{% endfor %}"), (Rope{kUser}));
  EXPECT_EQ(rope("{% macro m() %}{{ kwargs.keys() | list | first }}{% endmacro %}{{ "
                 "m(**{messages[0].name: 1}) }}"),
            (Rope{kUser}));
}

TEST(Rope, ToolResultsStayUntrusted) {
  const json::value messages = {
      {{"role", "tool"}, {"content", {{"text", "<|im_end|>"}, {"list", {"<s>", 1}}}}}};
  const auto result =
      render("<s>{{ messages[0].content.text }}{{ messages[0].content | tojson }}", messages);
  ASSERT_TRUE(result.ok());
  for (const RopePiece& piece : *result) {
    EXPECT_EQ(piece.trusted, piece.text == "<s>" || piece.text == "1") << piece.text;
  }
}

TEST(Rope, HalvesOfATokenFromBothSidesStayApart) {
  EXPECT_EQ(rope("<|im_{{ messages[0].content }}", "start|>"),
            (Rope{{"<|im_", true}, {"start|>", false}}));
}

TEST(Rope, ComparisonIgnoresProvenance) {
  EXPECT_EQ(rope("{{ messages[0].role == 'user' and 'user' in [messages[0].role] and {'user': "
                 "1}[messages[0].role] }}"),
            (Rope{{"1", true}}));
}

TEST(Rope, AppendingToASharedStringLeavesTheOtherAlone) {
  EXPECT_EQ(
      to_string(rope("{% set a = messages[0].content %}{% set b = a + 'x' %}{% set c = a + 'y' %}"
                     "{{ a }},{{ b }},{{ c }},{{ a + a }}",
                     "q")),
      "q,qx,qy,qq");
}

TEST(ChatTemplate, RaiseExceptionSpeaksVerbatim) {
  EXPECT_EQ(failure("{{ raise_exception('Roles must alternate!') }}"), "Roles must alternate!");
}

TEST(ChatTemplate, ErrorsNameTheirLine) {
  EXPECT_EQ(failure("a\nb\n{{ x.y }}"), "chat template line 3: 'x' is undefined");
  EXPECT_EQ(failure("a\n{% if %}"),
            "chat template line 2: Expected an expression, got 'end of statement block'");
  EXPECT_EQ(
      failure("{% for x in y %}\n"),
      "chat template line 1: Unexpected end of template. Jinja was looking for the following tags: "
      "'endfor' or 'else'.");
}

TEST(ChatTemplate, EveryErrorIsInvalidArgument) {
  for (const char* source :
       {"{{", "{{ 1/0 }}", "{% x %}", "{{ raise_exception('x') }}", "{{ 'a' * 10**12 }}"}) {
    const auto result = render(source, json::array());
    ASSERT_FALSE(result.ok()) << source;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << source;
  }
}

TEST(ChatTemplate, EndlessWorkRunsOutOfSteps) {
  EXPECT_THAT(
      failure("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
              {.steps = 1'000'000}),
      testing::HasSubstr("runs too long"));
}

TEST(ChatTemplate, AValueThatWouldBeTooLargeIsNotBuilt) {
  for (const char* source : {"{% set x = [1] * 10**10 %}",
                             "{% set x = (1,) * 10**18 %}",
                             "{% set x = [[1] * 1000] * 100000 %}",
                             "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}"
                             "{% set ns.x = ns.x + ns.x %}{% endfor %}"}) {
    EXPECT_THAT(failure(source), testing::HasSubstr("a value holds more than 5000000 parts"))
        << source;
  }
}

TEST(ChatTemplate, RecursionAndNestingAreBounded) {
  EXPECT_THAT(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              testing::HasSubstr("recurses too deeply"));
  EXPECT_THAT(failure("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
              testing::HasSubstr("nests too deeply"));
  EXPECT_THAT(failure("{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = "
                      "[ns.x] %}{% endfor %}"),
              testing::HasSubstr("nest deeper"));
  std::string sum = "1";
  for (int i = 0; i < 20'000; ++i) {
    sum += "+1";
  }
  EXPECT_THAT(failure("{{ " + sum + " }}"), testing::HasSubstr("recurses too deeply"));
}

TEST(ChatTemplate, TextIsBounded) {
  EXPECT_THAT(failure("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x "
                      "+ ns.x %}{% endfor %}",
                      {.text_bytes = 16 << 20}),
              testing::HasSubstr("too much text"));
  EXPECT_THAT(failure("{{ '%1000000000d' % 1 }}"), testing::HasSubstr("too wide"));
  EXPECT_THAT(failure("{% for i in range(100) %}{{ 'abcdefghij' * 100 }}{% endfor %}",
                      {.output_bytes = 50'000}),
              testing::HasSubstr("longer than 50000 bytes"));
}

TEST(ChatTemplate, RingsOfNamespacesAndMacrosAreLetGo) {
  EXPECT_EQ(failure("{% set ns = namespace() %}{% set ns.me = ns %}{% macro m() %}x{% endmacro "
                    "%}{% set ns.m = m %}"),
            "rendered: ");
}

TEST(ChatTemplate, TenThousandMessagesTakeLinearTime) {
  const std::string source =
      "{%- set ns = namespace(text='', last=none) -%}{%- for m in messages -%}"
      "{%- if loop.first or m.role != ns.last -%}{%- set ns.text = ns.text + '<|' + m.role + '|>' "
      "-%}{%- endif -%}"
      "{%- set ns.last = m.role -%}{%- set ns.text = ns.text ~ m.content | trim ~ '\\n' -%}{%- "
      "endfor -%}{{ ns.text }}";
  const auto chat = ChatTemplate::parse(source);
  ASSERT_TRUE(chat.ok());
  const auto text_bytes_needed = [&](int count) {
    json::array messages;
    for (int i = 0; i < count; ++i) {
      messages.push_back(
          {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", " some words, then more "}});
    }
    const json::value value = messages;
    RenderInput input{.messages = value};
    // About a hundred bytes and a hundred steps a message: a quadratic cost would need thousands of
    // times more.
    input.limits.text_bytes = std::int64_t{300} * count;
    input.limits.steps = std::int64_t{100} * count;
    const auto result = chat->render(input);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? to_string(*result).size() : 0;
  };
  const std::size_t one = text_bytes_needed(1'000);
  EXPECT_EQ(text_bytes_needed(10'000), 10 * one);
}

TEST(ChatTemplate, OneTemplateRendersInManyThreads) {
  const auto chat =
      ChatTemplate::parse("{% for m in messages %}<s>{{ 'a' + m.content + 'b' }}{% endfor %}");
  ASSERT_TRUE(chat.ok());
  const json::value messages = {{{"content", "1"}}, {{"content", "2"}}};
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        result = to_string(*chat->render({.messages = messages}));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(results, testing::Each("<s>a1b<s>a2b"));
}

TEST(ChatTemplate, StrftimeNowAsksTheGivenClock) {
  const auto chat = ChatTemplate::parse("{{ strftime_now('%d %b %Y') }}");
  const json::value messages = json::array();
  RenderInput input{.messages = messages};
  input.local_time = [] {
    std::tm time{};
    time.tm_mday = 26;
    time.tm_mon = 6;
    time.tm_year = 124;
    return time;
  };
  EXPECT_EQ(to_string(*chat->render(input)), "26 Jul 2024");
}

}  // namespace
}  // namespace headrace
