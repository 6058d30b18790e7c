#include <utility>

#include "server/fields.h"
#include "server/generation_request.h"
#include "server/parse_sampling.h"

namespace headrace {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMaxInt = 2147483647;

// TGI draws only if told to, or if a field that only matters for drawing is given.
bool draws(FieldReader& parameters) {
  bool any = parameters.boolean("do_sample", false);
  for (const char* name : {"temperature", "top_k", "top_p", "typical_p"}) {
    any = parameters.find(name) != nullptr || any;
  }
  return any;
}

void refuse_unbuilt_tgi(FieldReader& parameters) {
  for (const char* name : {"grammar", "adapter_id", "truncate"}) {
    if (parameters.find(name) != nullptr) {
      parameters.fail(name, "is not supported by this server", ErrorCode::kUnsupported);
    }
  }
  for (const char* name : {"watermark", "decoder_input_details"}) {
    if (parameters.boolean(name, false)) {
      parameters.fail(name, "is not supported by this server", ErrorCode::kUnsupported);
    }
  }
  if (parameters.integer("best_of", 1, kMaxInt).value_or(1) != 1) {
    parameters.fail("best_of", "is not supported by this server", ErrorCode::kUnsupported);
  }
}

void read_parameters(FieldReader& parameters, int vocab_size, GenerationRequest& request) {
  const bool drawing = draws(parameters);
  if (parameters.find("temperature") != nullptr) {
    parameters.number("temperature", {0, 100, true});
  }
  request.max_tokens =
      static_cast<int>(parameters.integer("max_new_tokens", 1, kMaxInt).value_or(100));
  request.echo = parameters.boolean("return_full_text", false);
  request.details = parameters.boolean("details", false);
  const auto top = parameters.integer("top_n_tokens", 0, kMaxTopLogprobs);
  refuse_unbuilt_tgi(parameters);
  read_sampling_fields(parameters, vocab_size, request);
  if (!drawing) {
    request.sampling.temperature = 0;
  }
  request.sampling.num_top_logprobs = static_cast<int>(top.value_or(0));
  if (request.stream || request.n != 1) {
    parameters.fail(request.stream ? "stream" : "n", "is not a parameter of this route");
  }
}

}  // namespace

Result<GenerationRequest> parse_tgi_request(const json::object& body, int vocab_size) {
  FieldReader fields(body);
  GenerationRequest request;
  request.form = ApiForm::kTgi;
  fields.text("model");
  const std::optional<std::string> inputs = fields.text("inputs");
  if (!inputs) {
    fields.fail("inputs", "is missing");
  } else if (inputs->empty()) {
    fields.fail("inputs", "must not be empty");
  } else {
    request.prompts.emplace_back(*inputs);
  }
  static const json::object no_parameters;
  const json::object* parameters = fields.object("parameters");
  FieldReader inner(parameters != nullptr ? *parameters : no_parameters, "parameters.");
  read_parameters(inner, vocab_size, request);
  request.stream = fields.boolean("stream", false);
  HR_RETURN_IF_ERROR(fields.status());
  HR_RETURN_IF_ERROR(inner.status());
  request.ignored_fields = fields.unknown();
  for (std::string& name : inner.unknown()) {
    request.ignored_fields.push_back(std::move(name));
  }
  return request;
}

}  // namespace headrace
