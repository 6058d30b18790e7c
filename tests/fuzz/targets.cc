#include "fuzz/targets.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>

#include "chat/chat_template.h"
#include "formats/describe.h"
#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "model/model.h"
#include "server/generation_request.h"
#include "server/json_body.h"
#include "tokenizer/tokenizer.h"

namespace headrace::fuzz {
namespace {

// Whatever was accepted must be readable from end to end.
void read_everything(const GgufFile& file) {
  std::size_t sum = 0;
  for (const TensorView& tensor : file.tensors()) {
    for (const std::byte byte : tensor.data) {
      sum += std::to_integer<std::size_t>(byte);
    }
  }
  EXPECT_LE(sum, 255 * file.bytes().size());
  const GgufMetadata& metadata = file.metadata();
  for (const GgufEntry& entry : metadata.entries()) {
    static_cast<void>(metadata.strings(entry.key).ok());
    static_cast<void>(metadata.floats(entry.key).ok());
    static_cast<void>(metadata.ints(entry.key).ok());
    static_cast<void>(metadata.bools(entry.key).ok());
    static_cast<void>(metadata.u64(entry.key).ok());
    static_cast<void>(metadata.i64(entry.key).ok());
    static_cast<void>(metadata.f32(entry.key).ok());
  }
}

Outcome run_gguf(std::string_view input) {
  // Copied to its exact size, so that the address sanitizer sees one byte too far.
  const auto exact = std::make_unique<std::byte[]>(input.size());
  std::transform(
      input.begin(), input.end(), exact.get(), [](char c) { return static_cast<std::byte>(c); });
  const auto file = GgufFile::parse({exact.get(), input.size()}, "m.gguf");
  if (!file.ok()) {
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    return {.message = file.error().message};
  }
  read_everything(*file);
  EXPECT_NO_THROW(static_cast<void>(boost::json::parse(describe_json(*file))));
  EXPECT_FALSE(describe_text(*file).empty());
  std::string message;
  if (const auto config = read_config(*file); !config.ok()) {
    message = config.error().message;
  }
  auto vocabulary = read_tokenizer(*file);
  if (!vocabulary.ok()) {
    return {.message = message + vocabulary.error().message};
  }
  const auto tokenizer = Tokenizer::create(*std::move(vocabulary));
  if (!tokenizer.ok()) {
    return {.message = message + tokenizer.error().message};
  }
  const auto ids = (*tokenizer)->encode("ab <s> \n1", SpecialTokens::kParse, AddBos::kAsModelSays);
  static_cast<void>((*tokenizer)->decode(ids, SkipSpecial::kNo));
  return {.accepted = message.empty(), .message = message};
}

constexpr auto kGgufWords = std::to_array<std::string_view>({"GGUF",
                                                             "general.architecture",
                                                             "general.alignment",
                                                             "llama",
                                                             "qwen2",
                                                             "gemma3",
                                                             "gpt2",
                                                             "tokenizer.ggml.tokens",
                                                             "tokenizer.ggml.merges",
                                                             "tokenizer.ggml.scores",
                                                             "tokenizer.ggml.token_type",
                                                             "tokenizer.ggml.pre",
                                                             "tokenizer.chat_template",
                                                             "token_embd.weight",
                                                             ".block_count",
                                                             ".attention.head_count",
                                                             "\xff\xff\xff\xff\xff\xff\xff\x7f"});

constexpr std::string_view kMessages =
    R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi, <b>you</b> 7"},)"
    R"({"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{"x":1.5}}}]}])";

std::tm first_of_2000() {
  std::tm time{};
  time.tm_year = 100;
  time.tm_mday = 1;
  return time;
}

Outcome run_chat_template(std::string_view input) {
  const std::size_t end = std::min(input.find('\0'), input.size());
  const auto chat_template = ChatTemplate::parse(std::string(input.substr(0, end)));
  if (!chat_template.ok()) {
    return {.message = chat_template.error().message};
  }
  auto messages = parse_json(input.substr(std::min(end + 1, input.size())));
  if (!messages.ok()) {
    messages = parse_json(kMessages);
  }
  const auto rope = chat_template->render({.messages = *messages,
                                           .bos_token = "<s>",
                                           .eos_token = "</s>",
                                           .local_time = first_of_2000,
                                           .limits = {.steps = 20'000,
                                                      .text_bytes = std::int64_t{1} << 20,
                                                      .output_bytes = std::size_t{256} << 10}});
  if (!rope.ok()) {
    return {.message = rope.error().message};
  }
  EXPECT_LE(to_string(*rope).size(), std::size_t{256} << 10);
  for (std::size_t i = 0; i < rope->size(); ++i) {
    EXPECT_FALSE((*rope)[i].text.empty());
    EXPECT_TRUE(i == 0 || (*rope)[i].trusted != (*rope)[i - 1].trusted);
  }
  return {.accepted = true};
}

constexpr auto kTemplateWords = std::to_array<std::string_view>({"{{",
                                                                 "}}",
                                                                 "{%",
                                                                 "%}",
                                                                 "{#",
                                                                 "#}",
                                                                 "{%- ",
                                                                 " -%}",
                                                                 "{% for m in messages %}",
                                                                 "{% endfor %}",
                                                                 "{% if ",
                                                                 "{% elif ",
                                                                 "{% else %}",
                                                                 "{% endif %}",
                                                                 "{% set x = ",
                                                                 "{% macro f(",
                                                                 "{% endmacro %}",
                                                                 "namespace(",
                                                                 "loop.index",
                                                                 "loop.changed(",
                                                                 "range(",
                                                                 "range(10**9)",
                                                                 " * 10**9",
                                                                 "|join(",
                                                                 "|tojson",
                                                                 "|map(attribute=",
                                                                 "|selectattr(",
                                                                 "|groupby(",
                                                                 "|sort",
                                                                 "|batch(",
                                                                 "|indent(",
                                                                 "|replace(",
                                                                 "|format(",
                                                                 "|length",
                                                                 "|string",
                                                                 "|safe",
                                                                 "|upper",
                                                                 ".split(",
                                                                 ".items()",
                                                                 ".format(",
                                                                 ".center(9999999)",
                                                                 " is defined",
                                                                 " in ",
                                                                 " not ",
                                                                 "['role']",
                                                                 "[::-1]",
                                                                 "[1:",
                                                                 "'%999999d' %",
                                                                 "'{:>99999999}'",
                                                                 "\"",
                                                                 "'",
                                                                 "(",
                                                                 "[",
                                                                 "~",
                                                                 "\xc3\xa9",
                                                                 "\xff"});

Outcome run_request(std::string_view input) {
  constexpr int kVocabSize = 300;
  const auto body = parse_json_object(input);
  if (!body.ok()) {
    return {.message = body.error().message};
  }
  Outcome outcome;
  for (const auto parse : {parse_chat_request, parse_completion_request, parse_tgi_request}) {
    const auto request = parse(*body, kVocabSize);
    if (!request.ok()) {
      EXPECT_FALSE(request.error().message.empty());
      outcome.message += request.error().message;
      continue;
    }
    outcome.accepted = true;
    EXPECT_FALSE(request->prompts.empty());
    EXPECT_LE(request->prompts.size() * request->n, std::size_t{kMaxChoices});
    EXPECT_LE(request->stop.size(), std::size_t{kMaxStops});
  }
  return outcome;
}

constexpr auto kRequestWords =
    std::to_array<std::string_view>({R"("messages":[)",
                                     R"({"role":"user","content":"a"})",
                                     R"("role":"tool")",
                                     R"("content":[{"type":"text","text":"a"}])",
                                     R"("type":"image_url")",
                                     R"("prompt":)",
                                     R"("inputs":)",
                                     R"("parameters":{)",
                                     R"("stop":[)",
                                     R"("stop_token_ids":[)",
                                     R"("logit_bias":{"1":)",
                                     R"("n":)",
                                     R"("max_tokens":)",
                                     R"("temperature":)",
                                     R"("logprobs":)",
                                     R"("stream_options":{)",
                                     R"("seed":)",
                                     R"("tools":[)",
                                     R"("deadline_ms":)",
                                     R"("echo":true)",
                                     "null",
                                     "true",
                                     "[[",
                                     "]",
                                     "{",
                                     "}",
                                     ",",
                                     ":",
                                     "\"",
                                     "\\ud800",
                                     "\\u0000",
                                     "1e400"});

}  // namespace

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A header's 32 KiB stand for at most some 4,000 entries, and a vocabulary of as many tokens.
const Target kGgufTarget = {"gguf", run_gguf, kGgufWords, 32 << 10, 16 * kMiB};
// The budgets bound text and steps; a value takes some hundred bytes.
const Target kChatTemplateTarget = {
    "chat_template", run_chat_template, kTemplateWords, 8 << 10, 64 * kMiB};
const Target kRequestTarget = {"request", run_request, kRequestWords, 16 << 10, 8 * kMiB};

}  // namespace headrace::fuzz
