#include "formats/internal/gguf_parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "formats/internal/printable.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1U << 20;
constexpr std::uint64_t kMaxDims = 4;
constexpr std::uint64_t kMaxKeyBytes = 65535;  // the specification's limit
constexpr std::uint64_t kMaxNameBytes =
    255;  // the specification asks for 64, some writers use more

// Far above any real file, low enough that a hostile one cannot ask for much memory.
constexpr std::uint64_t kMaxEntries = 1U << 16;
constexpr std::uint64_t kMaxTensors = 1U << 17;

// The least a description takes: key or name length and one character, types, counts, one value.
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct NamedType {
  std::uint32_t id;
  std::string_view name;
};

// Types of ggml that this reader knows by name only.
constexpr std::array kOtherTypes = {
    NamedType{4, "Q4_2"},        NamedType{5, "Q4_3"},        NamedType{9, "Q8_1"},
    NamedType{10, "Q2_K"},       NamedType{11, "Q3_K"},       NamedType{15, "Q8_K"},
    NamedType{16, "IQ2_XXS"},    NamedType{17, "IQ2_XS"},     NamedType{18, "IQ3_XXS"},
    NamedType{19, "IQ1_S"},      NamedType{20, "IQ4_NL"},     NamedType{21, "IQ3_S"},
    NamedType{22, "IQ2_S"},      NamedType{23, "IQ4_XS"},     NamedType{24, "I8"},
    NamedType{25, "I16"},        NamedType{26, "I32"},        NamedType{27, "I64"},
    NamedType{28, "F64"},        NamedType{29, "IQ1_M"},      NamedType{31, "Q4_0_4_4"},
    NamedType{32, "Q4_0_4_8"},   NamedType{33, "Q4_0_8_8"},   NamedType{34, "TQ1_0"},
    NamedType{35, "TQ2_0"},      NamedType{36, "IQ4_NL_4_4"}, NamedType{37, "IQ4_NL_4_8"},
    NamedType{38, "IQ4_NL_8_8"}, NamedType{39, "MXFP4"},      NamedType{40, "NVFP4"},
    NamedType{41, "Q1_0"},
};

std::string supported_types() {
  std::string list;
  for (int i = 0; i < kNumDTypes; ++i) {
    list += i == 0 ? "" : " ";
    list += dtype_info(static_cast<DType>(i)).name;
  }
  return list;
}

// a * b, or none where it does not fit 63 bits.
std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (b != 0 && a > kMax / b) {
    return std::nullopt;
  }
  return a * b;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t power_of_two) {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}

}  // namespace

GgufParser::GgufParser(std::span<const std::byte> bytes, std::string_view name)
    : bytes_(bytes), name_(name) {}

template <typename T>
Result<T> GgufParser::take(std::string_view what) {
  if (left() < sizeof(T)) {
    return corrupt("{}: the file ends here, at byte {}: it is cut short", what, bytes_.size());
  }
  T value;
  std::memcpy(&value, bytes_.data() + at_, sizeof(T));
  at_ += sizeof(T);
  return value;
}

Result<std::string_view> GgufParser::take_string(std::string_view what) {
  HR_ASSIGN_OR_RETURN(const auto length, take<std::uint64_t>(what));
  if (length > left()) {
    return corrupt("{}: length {}, but only {} bytes are left in the file", what, length, left());
  }
  const auto* first = reinterpret_cast<const char*>(bytes_.data() + at_);
  at_ += length;
  return std::string_view(first, length);
}

Result<GgufFile> GgufParser::parse() {
  file_.bytes_ = bytes_;
  file_.metadata_ = GgufMetadata(name_);
  HR_RETURN_IF_ERROR(parse_header());
  for (std::uint64_t i = 0; i < num_entries_; ++i) {
    HR_RETURN_IF_ERROR(parse_entry(i));
  }
  HR_RETURN_IF_ERROR(check_general_keys());
  for (std::uint64_t i = 0; i < num_tensors_; ++i) {
    HR_RETURN_IF_ERROR(parse_tensor(i));
  }
  HR_RETURN_IF_ERROR(place_tensors());
  HR_RETURN_IF_ERROR(check_overlaps());
  return std::move(file_);
}

Status GgufParser::parse_header() {
  if (bytes_.size() < kMagic.size() ||
      std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0) {
    return corrupt("not a GGUF file: it does not start with the letters GGUF");
  }
  at_ = kMagic.size();
  HR_ASSIGN_OR_RETURN(file_.version_, take<std::uint32_t>("version"));
  const std::uint32_t version = file_.version_;
  if (version != 0 && (version & 0xFFFFU) == 0) {
    return unsupported("a big-endian file: convert it to little-endian (gguf-convert-endian)");
  }
  if (version != 2 && version != 3) {
    return unsupported("GGUF version {}: versions 2 and 3 are read", version);
  }
  HR_ASSIGN_OR_RETURN(num_tensors_, take<std::uint64_t>("tensor count"));
  HR_ASSIGN_OR_RETURN(num_entries_, take<std::uint64_t>("metadata count"));
  const std::uint64_t max_tensors = std::min(kMaxTensors, left() / kMinTensorBytes);
  if (num_tensors_ > max_tensors) {
    return corrupt("tensor count {}: a file of {} bytes holds at most {}",
                   num_tensors_,
                   bytes_.size(),
                   max_tensors);
  }
  const std::uint64_t max_entries = std::min(kMaxEntries, left() / kMinEntryBytes);
  if (num_entries_ > max_entries) {
    return corrupt("metadata count {}: a file of {} bytes holds at most {}",
                   num_entries_,
                   bytes_.size(),
                   max_entries);
  }
  return {};
}

Status GgufParser::parse_entry(std::uint64_t entry_idx) {
  HR_ASSIGN_OR_RETURN(const std::string_view key,
                      take_string(fmt::format("metadata {}: key", entry_idx)));
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return corrupt(
        "metadata {}: a key of {} bytes; 1 to {} are allowed", entry_idx, key.size(), kMaxKeyBytes);
  }
  const std::string what = fmt::format("key '{}'", printable(key));
  HR_ASSIGN_OR_RETURN(const GgufValue value, parse_value(what));
  if (!file_.metadata_.add(key, value)) {
    return corrupt("{}: occurs twice", what);
  }
  return {};
}

Result<GgufValue> GgufParser::parse_value(std::string_view what) {
  HR_ASSIGN_OR_RETURN(const auto type_id, take<std::uint32_t>(what));
  if (type_id >= kNumGgufTypes) {
    return corrupt("{}: value type {} is unknown", what, type_id);
  }
  GgufValue value;
  value.type = value.element_type = static_cast<GgufType>(type_id);
  if (value.type == GgufType::kArray) {
    return parse_array(what);
  }
  if (value.type == GgufType::kString) {
    HR_ASSIGN_OR_RETURN(const std::string_view text, take_string(what));
    value.bytes = std::as_bytes(std::span(text));
    return value;
  }
  const std::size_t size = gguf_type_bytes(value.type);
  if (left() < size) {
    return corrupt("{}: the file ends here, at byte {}: it is cut short", what, bytes_.size());
  }
  value.bytes = bytes_.subspan(at_, size);
  at_ += size;
  HR_RETURN_IF_ERROR(check_bools(value, what));
  return value;
}

Result<GgufValue> GgufParser::parse_array(std::string_view what) {
  HR_ASSIGN_OR_RETURN(const auto type_id, take<std::uint32_t>(what));
  if (type_id >= kNumGgufTypes) {
    return corrupt("{}: array element type {} is unknown", what, type_id);
  }
  GgufValue value;
  value.type = GgufType::kArray;
  value.element_type = static_cast<GgufType>(type_id);
  if (value.element_type == GgufType::kArray) {
    return unsupported("{}: an array of arrays is not read", what);
  }
  HR_ASSIGN_OR_RETURN(value.count, take<std::uint64_t>(what));
  const bool of_strings = value.element_type == GgufType::kString;
  const std::uint64_t least =
      of_strings ? sizeof(std::uint64_t) : gguf_type_bytes(value.element_type);
  if (value.count > left() / least) {
    return corrupt("{}: an array of {} elements, but only {} bytes are left in the file",
                   what,
                   value.count,
                   left());
  }
  const std::uint64_t begin = at_;
  if (of_strings) {
    for (std::uint64_t i = 0; i < value.count; ++i) {
      if (!take_string({}).ok()) {
        return corrupt("{}: element {} of {} runs past the end of the file", what, i, value.count);
      }
    }
  } else {
    at_ += value.count * least;
  }
  value.bytes = bytes_.subspan(begin, at_ - begin);
  HR_RETURN_IF_ERROR(check_bools(value, what));
  return value;
}

Status GgufParser::check_bools(const GgufValue& value, std::string_view what) const {
  if (value.element_type != GgufType::kBool) {
    return {};
  }
  for (const std::byte byte : value.bytes) {
    if (std::to_integer<int>(byte) > 1) {
      return corrupt("{}: a bool of {}; 0 and 1 are allowed", what, std::to_integer<int>(byte));
    }
  }
  return {};
}

Status GgufParser::check_general_keys() {
  file_.alignment_ = kDefaultAlignment;
  if (const GgufValue* value = file_.metadata_.find("general.alignment"); value != nullptr) {
    if (value->type != GgufType::kU32) {
      return corrupt("key 'general.alignment' holds {}, not u32", value->type_name());
    }
    HR_ASSIGN_OR_RETURN(file_.alignment_, file_.metadata_.u64("general.alignment"));
  }
  if (!std::has_single_bit(file_.alignment_) || file_.alignment_ < 8 ||
      file_.alignment_ > kMaxAlignment) {
    return corrupt("key 'general.alignment' is {}: a power of two from 8 to {} is allowed",
                   file_.alignment_,
                   kMaxAlignment);
  }
  HR_ASSIGN_OR_RETURN(const std::uint64_t num_parts, file_.metadata_.u64_or("split.count", 1));
  if (num_parts > 1) {
    return unsupported(
        "one of {} parts of a split model, which are not read: merge them (llama-gguf-split "
        "--merge)",
        num_parts);
  }
  return {};
}

Status GgufParser::parse_tensor(std::uint64_t tensor_idx) {
  HR_ASSIGN_OR_RETURN(const std::string_view name,
                      take_string(fmt::format("tensor {}: name", tensor_idx)));
  if (name.empty() || name.size() > kMaxNameBytes) {
    return corrupt("tensor {}: a name of {} bytes; 1 to {} are allowed",
                   tensor_idx,
                   name.size(),
                   kMaxNameBytes);
  }
  const std::string what = fmt::format("tensor '{}'", printable(name));
  TensorView tensor;
  tensor.name = name;
  HR_RETURN_IF_ERROR(parse_shape(tensor, what));
  HR_RETURN_IF_ERROR(parse_type(tensor, what));
  HR_ASSIGN_OR_RETURN(const std::uint64_t num_bytes, data_bytes(tensor, what));
  HR_ASSIGN_OR_RETURN(const auto offset, take<std::uint64_t>(what));
  if (offset % file_.alignment_ != 0) {
    return corrupt(
        "{}: offset {} is no multiple of the alignment of {}", what, offset, file_.alignment_);
  }
  if (offset > bytes_.size() || num_bytes > bytes_.size() - offset) {
    return corrupt(
        "{}: {} bytes at offset {} of the data do not fit a file of {} bytes: it is cut short",
        what,
        num_bytes,
        offset,
        bytes_.size());
  }
  if (!file_.index_.emplace(name, file_.tensors_.size()).second) {
    return corrupt("{}: occurs twice", what);
  }
  extents_.push_back({offset, offset + num_bytes, file_.tensors_.size()});
  file_.tensors_.push_back(std::move(tensor));
  return {};
}

Status GgufParser::parse_shape(TensorView& tensor, std::string_view what) {
  HR_ASSIGN_OR_RETURN(const auto num_dims, take<std::uint32_t>(what));
  if (num_dims == 0 || num_dims > kMaxDims) {
    return corrupt("{}: {} dimensions; 1 to {} are allowed", what, num_dims, kMaxDims);
  }
  std::uint64_t num_values = 1;
  for (std::uint32_t i = 0; i < num_dims; ++i) {
    HR_ASSIGN_OR_RETURN(const auto dim, take<std::uint64_t>(what));
    if (dim == 0) {
      return corrupt("{}: dimension {} is 0", what, i);
    }
    const auto product = multiply(num_values, dim);
    if (!product) {
      return corrupt(
          "{}: dimension {} of {}: the number of values does not fit 63 bits", what, i, dim);
    }
    num_values = *product;
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(dim));
  }
  return {};
}

Status GgufParser::parse_type(TensorView& tensor, std::string_view what) {
  HR_ASSIGN_OR_RETURN(const auto type_id, take<std::uint32_t>(what));
  if (const auto dtype = dtype_from_gguf(type_id); dtype) {
    tensor.dtype = *dtype;
    return {};
  }
  for (const NamedType& other : kOtherTypes) {
    if (other.id == type_id) {
      return unsupported("{}: type {} is not supported yet; supported are {}",
                         what,
                         other.name,
                         supported_types());
    }
  }
  return unsupported("{}: type {} is unknown; supported are {}", what, type_id, supported_types());
}

Result<std::uint64_t> GgufParser::data_bytes(const TensorView& tensor,
                                             std::string_view what) const {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const std::int64_t row = tensor.num_cols();
  if (row % info.block_size != 0) {
    return corrupt("{}: rows of {} values are no multiple of the {} block of {}",
                   what,
                   row,
                   info.name,
                   info.block_size);
  }
  const auto num_blocks = static_cast<std::uint64_t>(tensor.num_rows() * (row / info.block_size));
  const auto num_bytes = multiply(num_blocks, static_cast<std::uint64_t>(info.block_bytes));
  if (!num_bytes) {
    return corrupt("{}: its size does not fit 63 bits", what);
  }
  return *num_bytes;
}

Status GgufParser::place_tensors() {
  file_.data_offset_ = round_up(at_, file_.alignment_);
  for (Extent& extent : extents_) {
    TensorView& tensor = file_.tensors_[extent.tensor_idx];
    extent.begin += file_.data_offset_;
    extent.end += file_.data_offset_;
    if (extent.end > bytes_.size()) {
      return corrupt("tensor '{}': its bytes end at {}, the file at {}: it is cut short",
                     printable(tensor.name),
                     extent.end,
                     bytes_.size());
    }
    tensor.data = bytes_.subspan(extent.begin, extent.end - extent.begin);
  }
  return {};
}

Status GgufParser::check_overlaps() const {
  std::vector<Extent> sorted = extents_;
  std::sort(sorted.begin(), sorted.end(), [](const Extent& a, const Extent& b) {
    return a.begin < b.begin;
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].begin < sorted[i - 1].end) {
      return corrupt("tensor '{}': its bytes overlap those of tensor '{}'",
                     printable(file_.tensors_[sorted[i].tensor_idx].name),
                     printable(file_.tensors_[sorted[i - 1].tensor_idx].name));
    }
  }
  return {};
}

}  // namespace headrace
