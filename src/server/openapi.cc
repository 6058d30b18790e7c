#include "server/openapi.h"

#include <array>
#include <boost/json.hpp>
#include <map>
#include <utility>

#include "base/json_text.h"

namespace headrace {
namespace {

namespace json = boost::json;

json::object type(std::string_view name) { return {{"type", name}}; }
json::object list_of(json::object items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}
json::object ref(std::string_view schema) {
  return {{"$ref", fmt::format("#/components/schemas/{}", schema)}};
}

json::object range(std::string_view kind, double low, double high) {
  return {{"type", kind}, {"minimum", low}, {"maximum", high}};
}

json::object sampling_properties() {
  return {
      {"model", type("string")},
      {"temperature", range("number", 0, 100)},
      {"top_p", range("number", 0, 1)},
      {"top_k", type("integer")},
      {"min_p", range("number", 0, 1)},
      {"typical_p", range("number", 0, 1)},
      {"seed", type("integer")},
      {"n", range("integer", 1, 16)},
      {"stop", {{"oneOf", json::array{type("string"), list_of(type("string"))}}}},
      {"stop_token_ids", list_of(type("integer"))},
      {"max_tokens", type("integer")},
      {"min_tokens", type("integer")},
      {"ignore_eos", type("boolean")},
      {"frequency_penalty", range("number", -2, 2)},
      {"presence_penalty", range("number", -2, 2)},
      {"repetition_penalty", type("number")},
      {"logit_bias", {{"type", "object"}, {"additionalProperties", range("number", -100, 100)}}},
      {"stream", type("boolean")},
      {"stream_options",
       {{"type", "object"}, {"properties", {{"include_usage", type("boolean")}}}}},
      {"user", type("string")},
      {"priority", {{"type", "integer"}, {"description", "lower first"}}},
      {"deadline_ms", type("integer")},
      {"cache_salt", type("string")}};
}

json::object chat_properties() {
  return {{"messages", list_of(type("object"))},
          {"tools", list_of(type("object"))},
          {"documents", list_of(type("object"))},
          {"chat_template_kwargs", type("object")},
          {"add_generation_prompt", type("boolean")}};
}

json::object object_schema(json::object properties, json::array required) {
  json::object schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) {
    schema["required"] = std::move(required);
  }
  return schema;
}

json::object merged(json::object into, const json::object& from) {
  for (const auto& entry : from) {
    into[entry.key()] = entry.value();
  }
  return into;
}

json::object schemas() {
  const json::object prompt = {{"oneOf",
                                json::array{type("string"),
                                            list_of(type("string")),
                                            list_of(type("integer")),
                                            list_of(list_of(type("integer")))}}};
  json::object chat = merged(sampling_properties(), chat_properties());
  chat = merged(std::move(chat),
                {{"max_completion_tokens", type("integer")},
                 {"logprobs", type("boolean")},
                 {"top_logprobs", range("integer", 0, 20)}});
  json::object completion = merged(
      sampling_properties(),
      {{"prompt", prompt}, {"echo", type("boolean")}, {"logprobs", range("integer", 0, 20)}});
  json::object generate = {{"inputs", type("string")}, {"parameters", type("object")}};
  json::object tokenize = merged({{"model", type("string")},
                                  {"prompt", type("string")},
                                  {"add_special_tokens", type("boolean")},
                                  {"return_token_strs", type("boolean")}},
                                 chat_properties());
  json::object detokenize = {{"model", type("string")}, {"tokens", list_of(type("integer"))}};
  json::object messages = merged({{"model", type("string")}}, chat_properties());
  json::object error = object_schema({{"message", type("string")},
                                      {"type", type("string")},
                                      {"param", {{"type", json::array{"string", "null"}}}},
                                      {"code", type("string")}},
                                     {"message", "type", "param", "code"});
  return {{"ChatRequest", object_schema(std::move(chat), {"messages"})},
          {"CompletionRequest", object_schema(std::move(completion), {"prompt"})},
          {"GenerateRequest", object_schema(std::move(generate), {"inputs"})},
          {"TokenizeRequest", object_schema(std::move(tokenize), {})},
          {"DetokenizeRequest", object_schema(std::move(detokenize), {"tokens"})},
          {"TemplateRequest", object_schema(std::move(messages), {"messages"})},
          {"BatchingRequest",
           object_schema({{"model", type("string")}, {"batching", type("string")}}, {"batching"})},
          {"Error", object_schema({{"error", std::move(error)}}, {"error"})}};
}

std::string_view request_schema(const std::string& path) {
  static const std::map<std::string, std::string_view> names = {
      {"/v1/chat/completions", "ChatRequest"},
      {"/v1/chat/completions/render", "ChatRequest"},
      {"/v1/completions", "CompletionRequest"},
      {"/v1/completions/render", "CompletionRequest"},
      {"/generate", "GenerateRequest"},
      {"/generate_stream", "GenerateRequest"},
      {"/tokenize", "TokenizeRequest"},
      {"/detokenize", "DetokenizeRequest"},
      {"/apply-template", "TemplateRequest"},
      {"/admin/batching", "BatchingRequest"}};
  const auto found = names.find(path);
  return found == names.end() ? std::string_view() : found->second;
}

json::object operation(const Route& route) {
  json::object error = {{"description", "what went wrong"},
                        {"content", {{"application/json", {{"schema", ref("Error")}}}}}};
  json::object op = {
      {"summary", route.summary},
      {"responses", {{"200", {{"description", "the answer"}}}, {"default", std::move(error)}}}};
  if (const std::string_view schema = request_schema(route.path); !schema.empty()) {
    op["requestBody"] = json::object{
        {"required", true}, {"content", {{"application/json", {{"schema", ref(schema)}}}}}};
  }
  if (route.access == Access::kAdmin) {
    op["security"] = json::array{json::object{{"key", json::array()}}};
  } else if (route.access == Access::kKeyed) {
    op["security"] = json::array{json::object(), json::object{{"key", json::array()}}};
  }
  if (route.path.ends_with("/*")) {
    op["parameters"] = json::array{json::object{
        {"name", "id"}, {"in", "path"}, {"required", true}, {"schema", type("string")}}};
  }
  return op;
}

}  // namespace

std::string openapi_json(const Router& router, const std::string& version) {
  json::object paths;
  for (const Route& route : router.routes()) {
    std::string path = route.path;
    if (path.ends_with("/*")) {
      path.replace(path.size() - 1, 1, "{id}");
    }
    const std::string method = route.method == "GET" ? "get" : "post";
    if (!paths.contains(path)) {
      paths[path] = json::object();
    }
    paths[path].as_object()[method] = operation(route);
  }
  const json::object document = {
      {"openapi", "3.1.0"},
      {"info", {{"title", "Headrace"}, {"version", version}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", schemas()},
        {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return json_text(document);
}

}  // namespace headrace
