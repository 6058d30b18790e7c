#include "formats/describe.h"

#include <boost/json.hpp>
#include <cstdint>
#include <string>

#include "base/json_text.h"
#include "base/utf8.h"
#include "formats/internal/describe_parts.h"
#include "formats/internal/printable.h"

namespace headrace {
namespace {

namespace json = boost::json;

std::uint64_t offset_in_file(const GgufFile& file, const TensorView& tensor) {
  return static_cast<std::uint64_t>(tensor.data.data() - file.bytes().data());
}

std::string size_text(std::uint64_t num_bytes) {
  constexpr double kMi = 1024.0 * 1024.0;
  const auto bytes = static_cast<double>(num_bytes);
  if (bytes < kMi) {
    return fmt::format("{:.1f} KiB", bytes / 1024.0);
  }
  return bytes < 1024.0 * kMi ? fmt::format("{:.1f} MiB", bytes / kMi)
                              : fmt::format("{:.2f} GiB", bytes / 1024.0 / kMi);
}

std::string value_text(const GgufMetadata& metadata, const GgufEntry& entry) {
  if (entry.value.type == GgufType::kString) {
    const std::string_view text = *metadata.string(entry.key);
    const std::string shown = printable(text);
    return text.size() > 80 ? fmt::format("{} ({} bytes)", shown, text.size()) : shown;
  }
  if (entry.value.is_array() && entry.value.count > kLongArray) {
    return fmt::format("{} {}s", entry.value.count, gguf_type_name(entry.value.element_type));
  }
  return json_text(value_json(metadata, entry));
}

std::string shape_text(const TensorView& tensor) {
  std::string text = "[";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", tensor.shape[i]);
  }
  return text + "]";
}

std::string tokenizer_text(const GgufFile& file) {
  const json::value tokenizer = tokenizer_json(file);
  if (tokenizer.is_null()) {
    return "  none\n";
  }
  std::string text;
  for (const auto& [key, value] : tokenizer.as_object()) {
    text += fmt::format("  {:<18}{}\n", std::string_view(key), json_text(value));
  }
  return text;
}

}  // namespace

std::string describe_json(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const Totals totals = totals_of(file);
  json::object entries;
  for (const GgufEntry& entry : metadata.entries()) {
    entries[replace_invalid_utf8(entry.key)] = value_json(metadata, entry);
  }
  json::object types;
  for (const auto& [name, total] : totals.types) {
    types[name] = json::object{{"tensors", total.num_tensors}, {"bytes", total.num_bytes}};
  }
  json::array tensors;
  for (const TensorView& tensor : file.tensors()) {
    tensors.push_back(json::object{{"name", replace_invalid_utf8(tensor.name)},
                                   {"dtype", dtype_info(tensor.dtype).name},
                                   {"shape", json::array(tensor.shape.begin(), tensor.shape.end())},
                                   {"bytes", tensor.data.size()},
                                   {"offset", offset_in_file(file, tensor)}});
  }
  const auto architecture = metadata.string("general.architecture");
  const json::object out{
      {"file", replace_invalid_utf8(file.name())},
      {"bytes", file.bytes().size()},
      {"version", file.version()},
      {"alignment", file.alignment()},
      {"data_offset", file.data_offset()},
      {"architecture",
       architecture.ok() ? json::value(replace_invalid_utf8(*architecture)) : json::value(nullptr)},
      {"parameters", totals.num_values},
      {"tensor_bytes", totals.num_bytes},
      {"metadata", std::move(entries)},
      {"tokenizer", tokenizer_json(file)},
      {"types", std::move(types)},
      {"tensors", std::move(tensors)}};
  return json_text(out);
}

std::string describe_text(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const Totals totals = totals_of(file);
  std::string text = fmt::format("{}: GGUF {}, {}, {} tensors, {:.1f} M parameters\n\nMetadata\n",
                                 file.name(),
                                 file.version(),
                                 size_text(file.bytes().size()),
                                 file.tensors().size(),
                                 static_cast<double>(totals.num_values) / 1e6);
  for (const GgufEntry& entry : metadata.entries()) {
    text += fmt::format("  {:<44}{}\n", printable(entry.key), value_text(metadata, entry));
  }
  text += "\nTokenizer\n" + tokenizer_text(file) + "\nTypes\n";
  for (const auto& [name, total] : totals.types) {
    text += fmt::format(
        "  {:<6}{:>6} tensors  {:>12}\n", name, total.num_tensors, size_text(total.num_bytes));
  }
  text += "\nTensors\n";
  for (const TensorView& tensor : file.tensors()) {
    text += fmt::format("  {:<36}{:<6}{:<20}{:>12}\n",
                        printable(tensor.name),
                        dtype_info(tensor.dtype).name,
                        shape_text(tensor),
                        size_text(tensor.data.size()));
  }
  return text;
}

}  // namespace headrace
