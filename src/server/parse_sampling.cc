#include "server/parse_sampling.h"

#include <array>
#include <charconv>
#include <limits>
#include <random>

namespace headrace {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

void set_if(float& target, std::optional<double> value) {
  if (value) {
    target = static_cast<float>(*value);
  }
}

void read_logit_bias(FieldReader& fields, int vocab_size, SamplingParams& sampling) {
  const json::object* map = fields.object("logit_bias");
  if (map == nullptr) {
    return;
  }
  for (const auto& entry : *map) {
    const std::string_view key(entry.key().data(), entry.key().size());
    TokenId token = -1;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), token);
    // "05" beside "5" would be two biases of one token.
    const bool plain =
        code == std::errc() && end == key.data() + key.size() && (key == "0" || key.front() >= '1');
    if (!plain || token < 0 || token >= vocab_size) {
      return fields.fail(
          "logit_bias",
          fmt::format("keys are token ids from 0 to {}, without leading zeros", vocab_size - 1));
    }
    const bool is_number = entry.value().is_number();
    const double bias = is_number ? entry.value().to_number<double>() : 0;
    if (!is_number || bias < -100 || bias > 100) {
      return fields.fail("logit_bias", "values are numbers from -100 to 100");
    }
    sampling.logit_bias.push_back({token, static_cast<float>(bias)});
  }
}

void read_stop_token_ids(FieldReader& fields, int vocab_size, GenerationRequest& request) {
  std::optional<std::vector<TokenId>> ids = fields.token_ids("stop_token_ids", vocab_size);
  if (!ids) {
    return;
  }
  if (ids->size() > kMaxStops) {
    return fields.fail("stop_token_ids", fmt::format("at most {} are allowed", kMaxStops));
  }
  request.stop_token_ids = std::move(*ids);
}

void read_stream_fields(FieldReader& fields, GenerationRequest& request) {
  request.stream = fields.boolean("stream", false);
  const json::object* options = fields.object("stream_options");
  if (options == nullptr) {
    return;
  }
  if (!request.stream) {
    return fields.fail("stream_options", "is only allowed together with stream");
  }
  FieldReader inner(*options, "stream_options.");
  request.include_usage = inner.boolean("include_usage", false);
  inner.accept("include_obfuscation");
  if (!inner.ok()) {
    fields.fail("stream_options", "include_usage must be true or false");
  }
}

void read_limits(FieldReader& fields, GenerationRequest& request) {
  request.min_tokens = static_cast<int>(fields.integer("min_tokens", 0, kMaxInt).value_or(0));
  request.ignore_eos = fields.boolean("ignore_eos", false);
  request.n = static_cast<int>(fields.integer("n", 1, kMaxN).value_or(1));
  request.priority = static_cast<int>(fields.integer("priority", -kMaxInt, kMaxInt).value_or(0));
  request.deadline_ms = fields.integer("deadline_ms", 1, kMaxInt);
  request.cache_salt = fields.text("cache_salt").value_or("");
  if (request.max_tokens && request.min_tokens > *request.max_tokens) {
    fields.fail("min_tokens", "must not be more than max_tokens");
  }
}

}  // namespace

std::uint64_t random_seed() {
  static thread_local std::random_device device;
  const std::uint64_t high = device();
  return ((high << 32U) | device()) & ((std::uint64_t{1} << 53U) - 1);
}

void read_sampling_fields(FieldReader& fields, int vocab_size, GenerationRequest& request) {
  SamplingParams& sampling = request.sampling;
  set_if(sampling.temperature, fields.number("temperature", {0, 100}));
  set_if(sampling.top_p, fields.number("top_p", {0, 1, true}));
  // -1 and 0 both mean: all of them.
  const std::int64_t top_k = fields.integer("top_k", -1, kMaxInt).value_or(0);
  sampling.top_k = static_cast<int>(std::max<std::int64_t>(top_k, 0));
  set_if(sampling.min_p, fields.number("min_p", {0, 1}));
  set_if(sampling.typical_p, fields.number("typical_p", {0, 1, true}));
  set_if(sampling.repetition_penalty, fields.number("repetition_penalty", {0, 100, true}));
  set_if(sampling.frequency_penalty, fields.number("frequency_penalty", {-2, 2}));
  set_if(sampling.presence_penalty, fields.number("presence_penalty", {-2, 2}));
  const std::optional<std::int64_t> seed = fields.integer(
      "seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
  read_logit_bias(fields, vocab_size, sampling);
  request.stop = fields.strings("stop", kMaxStops);
  read_stop_token_ids(fields, vocab_size, request);
  read_stream_fields(fields, request);
  read_limits(fields, request);
  if (fields.find("user") != nullptr) {
    fields.text("user");
  }
}

void refuse_unbuilt_forms(FieldReader& fields, const json::object& body) {
  static constexpr std::array<std::string_view, 12> kUnbuilt = {"structured_outputs",
                                                                "grammar",
                                                                "json_schema",
                                                                "functions",
                                                                "function_call",
                                                                "audio",
                                                                "prompt_logprobs",
                                                                "suffix",
                                                                "prompt_embeds",
                                                                "modalities",
                                                                "web_search_options",
                                                                "use_beam_search"};
  for (const auto& field : body) {
    const std::string_view name(field.key().data(), field.key().size());
    const bool guided = name.starts_with("guided_");
    const bool listed = std::find(kUnbuilt.begin(), kUnbuilt.end(), name) != kUnbuilt.end();
    if (!guided && !listed) {
      continue;
    }
    const bool plain_text =
        name == "modalities" && field.value() == json::value(json::array{"text"});
    const bool off = field.value().is_null() || field.value() == json::value(false) || plain_text;
    fields.accept(name);
    if (!off) {
      fields.fail(name, "is not supported by this server", ErrorCode::kUnsupported);
    }
  }
  const json::object* format = fields.object("response_format");
  if (format == nullptr) {
    return;
  }
  const json::value* type = format->if_contains("type");
  if (type == nullptr || *type != json::value("text")) {
    fields.fail("response_format",
                "only {\"type\":\"text\"} is supported by this server",
                ErrorCode::kUnsupported);
  }
}

}  // namespace headrace
