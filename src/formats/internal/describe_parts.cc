#include "formats/internal/describe_parts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "formats/gguf_tokenizer.h"

namespace headrace {
namespace {

namespace json = boost::json;

constexpr std::size_t kFirstOfLong = 4;

json::value string_json(std::string_view text) { return json::string(replace_invalid_utf8(text)); }

// The shortest decimal that reads back as this float, so that 1e-6 is not shown with the digits of
// a double.
json::value float_json(float value) {
  if (!std::isfinite(value)) {
    return nullptr;
  }
  const std::string shortest = fmt::format("{}", value);
  double parsed = 0;
  std::from_chars(shortest.data(), shortest.data() + shortest.size(), parsed);
  return parsed;
}

// Elements as a JSON array, or its summary when there are many.
template <typename T, typename ToJson>
json::value array_json(const GgufValue& value, const std::vector<T>& elements, ToJson to_json) {
  const bool is_long = elements.size() > kLongArray;
  const std::size_t shown = is_long ? kFirstOfLong : elements.size();
  json::array array;
  for (std::size_t i = 0; i < shown; ++i) {
    array.push_back(to_json(elements[i]));
  }
  if (!is_long) {
    return array;
  }
  return json::object{{"element_type", gguf_type_name(value.element_type)},
                      {"count", value.count},
                      {"first", std::move(array)}};
}

json::value array_value_json(const GgufMetadata& metadata, const GgufEntry& entry) {
  const GgufValue& value = entry.value;
  if (value.element_type == GgufType::kString) {
    return array_json(value, *metadata.strings(entry.key), string_json);
  }
  if (value.element_type == GgufType::kBool) {
    return array_json(value, *metadata.bools(entry.key), [](bool b) { return json::value(b); });
  }
  if (value.element_type == GgufType::kF32 || value.element_type == GgufType::kF64) {
    return array_json(value, *metadata.floats(entry.key), float_json);
  }
  const auto ints = metadata.ints(entry.key);
  if (!ints.ok()) {  // a u64 above the largest i64
    return json::object{{"element_type", gguf_type_name(value.element_type)},
                        {"count", value.count}};
  }
  return array_json(value, *ints, [](std::int64_t i) { return json::value(i); });
}

}  // namespace

Totals totals_of(const GgufFile& file) {
  Totals totals;
  for (const TensorView& tensor : file.tensors()) {
    TypeTotal& type = totals.types[dtype_info(tensor.dtype).name];
    ++type.num_tensors;
    type.num_bytes += tensor.data.size();
    totals.num_bytes += tensor.data.size();
    totals.num_values += static_cast<std::uint64_t>(tensor.num_rows() * tensor.num_cols());
  }
  return totals;
}

json::value value_json(const GgufMetadata& metadata, const GgufEntry& entry) {
  switch (entry.value.type) {
    case GgufType::kArray:
      return array_value_json(metadata, entry);
    case GgufType::kString:
      return string_json(*metadata.string(entry.key));
    case GgufType::kBool:
      return *metadata.boolean(entry.key);
    case GgufType::kF32:
    case GgufType::kF64:
      return float_json(*metadata.f32(entry.key));
    case GgufType::kU64:
      return *metadata.u64(entry.key);
    default:
      return *metadata.i64(entry.key);
  }
}

json::value tokenizer_json(const GgufFile& file) {
  if (!file.metadata().has("tokenizer.ggml.model")) {
    return nullptr;
  }
  const auto data = read_tokenizer(file);
  if (!data.ok()) {
    return json::object{{"error", replace_invalid_utf8(data.error().message)}};
  }
  json::object out{{"model", string_json(data->model)},
                   {"pre", string_json(data->pre)},
                   {"tokens", data->tokens.size()},
                   {"merges", data->merges.size()}};
  const auto add_id = [&](std::string_view name, TokenId id) {
    if (id >= 0) {
      out[name] = json::object{{"id", id},
                               {"text", string_json(data->tokens[static_cast<std::size_t>(id)])}};
    } else {
      out[name] = nullptr;
    }
  };
  add_id("bos", data->bos_id);
  add_id("eos", data->eos_id);
  add_id("eot", data->eot_id);
  add_id("unk", data->unk_id);
  add_id("pad", data->pad_id);
  out["add_bos"] = data->add_bos;
  out["add_eos"] = data->add_eos;
  out["add_space_prefix"] = data->add_space_prefix;
  out["chat_template"] = !data->chat_template.empty();
  return out;
}

}  // namespace headrace
