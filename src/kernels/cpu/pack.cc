// Packing of weights into panels, and rows read back out of them.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/mman.h>

#include "base/check.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/paired_pack.h"
#include "kernels/cpu/panel_access.h"
#include "quant/block_formats.h"
#include "tensor/half.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::uint32_t load_u32(const std::uint8_t* p) {
  std::uint32_t value = 0;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

void store_u32(std::byte* p, std::uint32_t value) { std::memcpy(p, &value, sizeof(value)); }

// The halves of a block header or a legacy group are the file's own: exact.
void store_half(std::byte* halves, std::ptrdiff_t col, float value) {
  const std::uint16_t half = f32_to_f16(value);
  std::memcpy(halves + 2 * col, &half, sizeof(half));
}

void store_fifth_bits(std::byte* plane, std::ptrdiff_t col, const std::uint8_t* codes) {
  for (std::ptrdiff_t step = 0; step < 8; ++step) {
    std::byte* word = plane + (col / 16 * 8 + step) * 8;
    std::uint64_t bits = 0;
    std::memcpy(&bits, word, sizeof(bits));
    for (std::ptrdiff_t i = 0; i < 4; ++i) {
      bits |= std::uint64_t{codes[step * 4 + i] >> 4 & 1U} << (col % 16 * 4 + i);
    }
    std::memcpy(word, &bits, sizeof(bits));
  }
}

void store_upper_pairs(std::byte* plane, std::ptrdiff_t col, const std::uint8_t* codes) {
  for (std::ptrdiff_t half = 0; half < 2; ++half) {
    std::uint32_t pairs = 0;
    for (std::ptrdiff_t i = 0; i < 4; ++i) {
      pairs |= (load_u32(codes + half * 16 + i * 4) >> 4 & 0x03030303U) << (2 * i);
    }
    store_u32(plane + half * kCodeRowBytes + col * 4, pairs);
  }
}

// The 32 codes of one column of a group.
void store_codes(const PanelLayout& layout,
                 std::byte* group,
                 std::ptrdiff_t col,
                 const std::uint8_t* codes) {
  std::byte* rows = group + layout.codes_at + col * 4;
  if (layout.code_bits == 8) {
    for (std::ptrdiff_t step = 0; step < 8; ++step) {
      store_u32(rows + step * kCodeRowBytes, load_u32(codes + step * 4));
    }
    return;
  }
  for (std::ptrdiff_t step = 0; step < 4; ++step) {
    const std::uint32_t low = load_u32(codes + step * 4) & 0x0F0F0F0FU;
    const std::uint32_t high = load_u32(codes + 16 + step * 4) & 0x0F0F0F0FU;
    store_u32(rows + step * kCodeRowBytes, low | high << 4);
  }
  if (layout.code_bits == 5) {
    store_fifth_bits(group + layout.plane_at, col, codes);
  } else if (layout.code_bits == 6) {
    store_upper_pairs(group + layout.plane_at, col, codes);
  }
}

// One block (256 values, or 32 of a legacy type) of one column.
void pack_block(DType dtype, const std::byte* src, std::byte* block, std::ptrdiff_t col) {
  const PanelLayout layout = panel_layout(dtype);
  const int num_values = layout.groups_per_block * kGroup;
  std::array<std::uint8_t, 256> codes;
  if (!layout.has_integer_scales) {
    float scale = 0;
    float offset = 0;
    unpack_affine_row(dtype, src, num_values, codes.data(), &scale, &offset);
    store_codes(layout, block, col, codes.data());
    store_half(block, col, scale);
    if (layout.has_offsets) {
      store_half(block + kHalvesBytes, col, offset);
    }
    return;
  }
  unpack_codes_row(dtype, src, num_values, codes.data());
  float d = 0;
  float dmin = 0;
  std::array<std::int8_t, 16> scales{};
  std::array<std::uint8_t, 8> mins{};
  unpack_integer_scales_row(dtype, src, num_values, {&d, scales.data(), &dmin, mins.data()});
  store_half(block, col, d);
  if (layout.has_offsets) {
    store_half(block + kHalvesBytes, col, dmin);
  }
  for (std::ptrdiff_t g = 0; g < layout.groups_per_block; ++g) {
    std::byte* group = block + layout.header_bytes + g * layout.group_bytes;
    store_codes(layout, group, col, codes.data() + g * kGroup);
    if (layout.has_offsets) {
      group[col] = static_cast<std::byte>(scales[g]);
      group[kPanelCols + col] = static_cast<std::byte>(mins[g]);
    } else {
      group[col] = static_cast<std::byte>(scales[2 * g]);
      group[kPanelCols + col] = static_cast<std::byte>(scales[2 * g + 1]);
    }
  }
}

// Values of one panel, in stretches of k whose destination stays in the first-level cache.
template <typename Bits>
void pack_float_panel(const TensorView& view, int row_begin, int present, std::byte* panel) {
  constexpr std::size_t kStretch = 64;
  const auto num_cols = static_cast<std::size_t>(view.num_cols());
  for (std::size_t k_begin = 0; k_begin < num_cols; k_begin += kStretch) {
    const std::size_t k_end = std::min(num_cols, k_begin + kStretch);
    for (int col = 0; col < present; ++col) {
      const std::size_t row = static_cast<std::size_t>(row_begin) + static_cast<std::size_t>(col);
      const std::byte* src = view.data.data() + row * num_cols * sizeof(Bits);
      std::byte* dst = panel + static_cast<std::size_t>(col) * sizeof(Bits);
      for (std::size_t k = k_begin; k < k_end; ++k) {
        Bits value = 0;
        std::memcpy(&value, src + k * sizeof(Bits), sizeof(Bits));
        std::memcpy(dst + k * kPanelCols * sizeof(Bits), &value, sizeof(Bits));
      }
    }
  }
}

void pack_paired_panel(const TensorView& view, int panel_idx, std::byte* panel) {
  const auto num_cols = static_cast<int>(view.num_cols());
  const auto src_bytes = static_cast<std::size_t>(row_bytes(view.dtype, num_cols));
  const int row_begin = panel_idx * kPanelCols;
  const int present = std::min(kPanelCols, static_cast<int>(view.num_rows()) - row_begin);
  for (int col = 0; col < present; ++col) {
    const std::byte* src = view.data.data() + static_cast<std::size_t>(row_begin + col) * src_bytes;
    pack_paired_column(view.dtype, src, num_cols, col, panel);
  }
}

void pack_panel(const TensorView& view, int panel_idx, std::byte* panel) {
  const PanelLayout layout = panel_layout(view.dtype);
  const auto num_rows = static_cast<int>(view.num_rows());
  const auto num_cols = static_cast<int>(view.num_cols());
  const std::size_t src_bytes = static_cast<std::size_t>(row_bytes(view.dtype, num_cols));
  const int row_begin = panel_idx * kPanelCols;
  const int present = std::min(kPanelCols, num_rows - row_begin);
  if (layout.value_bytes == 4) {
    return pack_float_panel<std::uint32_t>(view, row_begin, present, panel);
  }
  if (layout.value_bytes == 2) {
    return pack_float_panel<std::uint16_t>(view, row_begin, present, panel);
  }
  for (int col = 0; col < present; ++col) {
    const std::byte* src = view.data.data() + static_cast<std::size_t>(row_begin + col) * src_bytes;
    const int num_blocks = num_cols / (layout.groups_per_block * kGroup);
    const auto file_block_bytes = static_cast<std::size_t>(dtype_info(view.dtype).block_bytes);
    for (int b = 0; b < num_blocks; ++b) {
      pack_block(view.dtype,
                 src + static_cast<std::size_t>(b) * file_block_bytes,
                 panel + static_cast<std::size_t>(b) * static_cast<std::size_t>(layout.block_bytes),
                 col);
    }
  }
}

std::size_t panel_size(DType dtype, int num_cols, ScaleForm form) {
  if (form == ScaleForm::kPaired) {
    return paired_panel_bytes(dtype, num_cols);
  }
  const PanelLayout layout = panel_layout(dtype);
  const auto k = static_cast<std::size_t>(num_cols);
  if (layout.code_bits == 0) {
    return (k * kPanelCols * static_cast<std::size_t>(layout.value_bytes) + kCacheLine - 1) /
           kCacheLine * kCacheLine;
  }
  return k / static_cast<std::size_t>(layout.groups_per_block * kGroup) *
         static_cast<std::size_t>(layout.block_bytes);
}

float half_at(const std::byte* halves, std::ptrdiff_t col) {
  std::uint16_t half = 0;
  std::memcpy(&half, halves + 2 * col, sizeof(half));
  return f16_to_f32(half);
}

// Fresh pages of the system, zero without being touched, so that whoever writes first places them.
void* map_huge(std::size_t bytes, Buffer::Deleter& release) {
  const std::size_t mapped = bytes + kHugePage;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return nullptr;
  }
  void* data = base;
  std::size_t space = mapped;
  std::align(kHugePage, bytes, data, space);
  madvise(base, mapped, MADV_HUGEPAGE);  // a wish: without it only speed changes
  release = [base, mapped](void* /*data*/) { munmap(base, mapped); };
  return data;
}

}  // namespace

Result<Buffer> allocate_counted(std::size_t bytes, MemoryPart part, MemoryCounters& counters) {
  if (bytes == 0) {
    return Buffer();
  }
  constexpr std::size_t kMaxBytes = std::size_t{1} << 46;
  Buffer::Deleter release;
  void* data = nullptr;
  if (bytes >= kHugePage && bytes < kMaxBytes) {
    data = map_huge(bytes, release);
  } else if (bytes < kHugePage) {
    const std::size_t padded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    data = std::aligned_alloc(kCacheLine, padded);
    release = [](void* memory) { std::free(memory); };
    if (data != nullptr) {
      std::memset(data, 0, padded);
    }
  }
  if (data == nullptr) {
    return make_error(ErrorCode::kExhausted, "no memory for {} more bytes", bytes);
  }
  counters.add(part, bytes);
  return Buffer(data, bytes, [bytes, part, &counters, release](void* memory) {
    release(memory);
    counters.subtract(part, bytes);
  });
}

bool can_pair_scales(DType dtype, const PackOptions& options) {
  return code_bits(dtype) == 4 && !options.row_lookup && options.input == InputRounding::kOnePlane;
}

std::size_t packed_weight_bytes(
    DType dtype, int num_rows, int num_cols, const PackOptions& options, ScaleForm form) {
  const auto num_panels = static_cast<std::size_t>((num_rows + kPanelCols - 1) / kPanelCols);
  const bool paired = form == ScaleForm::kPaired && can_pair_scales(dtype, options);
  return num_panels * panel_size(dtype, num_cols, paired ? form : ScaleForm::kFile);
}

Result<std::unique_ptr<Weight>> pack_weight(const TensorView& view,
                                            const PackOptions& options,
                                            ThreadPool& pool,
                                            MemoryCounters& counters,
                                            ScaleForm form) {
  constexpr std::int64_t kMaxDim = std::int64_t{1} << 30;
  const std::int64_t rows = view.num_rows();
  const std::int64_t cols = view.num_cols();
  if (rows < 1 || cols < 1 || rows > kMaxDim || cols > kMaxDim ||
      cols % dtype_info(view.dtype).block_size != 0) {
    return make_error(ErrorCode::kCorrupt,
                      "tensor '{}': {} rows of {} values cannot be {}",
                      view.name,
                      rows,
                      cols,
                      dtype_info(view.dtype).name);
  }
  if (view.data.size() != static_cast<std::size_t>(rows * row_bytes(view.dtype, cols))) {
    return make_error(ErrorCode::kCorrupt,
                      "tensor '{}': {} bytes where {} rows of {} values of {} need {}",
                      view.name,
                      view.data.size(),
                      rows,
                      cols,
                      dtype_info(view.dtype).name,
                      rows * row_bytes(view.dtype, cols));
  }
  auto weight = std::make_unique<CpuWeight>();
  weight->num_rows = static_cast<int>(rows);
  weight->num_cols = static_cast<int>(cols);
  weight->dtype = view.dtype;
  weight->k_split = options.k_split;
  weight->num_planes =
      options.input == InputRounding::kTwoPlanes && is_quantized(view.dtype) ? 2 : 1;
  weight->form = can_pair_scales(view.dtype, options) ? form : ScaleForm::kFile;
  weight->panel_bytes = panel_size(view.dtype, weight->num_cols, weight->form);
  weight->bytes =
      packed_weight_bytes(view.dtype, weight->num_rows, weight->num_cols, options, weight->form);
  HR_ASSIGN_OR_RETURN(weight->data,
                      allocate_counted(weight->bytes, MemoryPart::kWeights, counters));
  const auto pack = weight->form == ScaleForm::kPaired ? pack_paired_panel : pack_panel;
  pool.run(weight->num_panels(), [&](int panel_idx, int /*worker*/) {
    pack(view,
         panel_idx,
         weight->data.as<>() + static_cast<std::size_t>(panel_idx) * weight->panel_bytes);
  });
  return std::unique_ptr<Weight>(std::move(weight));
}

GroupColumn read_group_column(DType dtype,
                              const std::byte* panel,
                              std::ptrdiff_t group_idx,
                              std::ptrdiff_t col) {
  const PanelLayout layout = panel_layout(dtype);
  const std::byte* block = panel + static_cast<std::size_t>(group_idx / layout.groups_per_block) *
                                       static_cast<std::size_t>(layout.block_bytes);
  const std::byte* group =
      block + layout.header_bytes + group_idx % layout.groups_per_block * layout.group_bytes;
  GroupColumn out;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(group);
  const std::uint8_t* row = bytes + layout.codes_at + col * 4;
  const std::uint8_t* plane = bytes + layout.plane_at;
  for (std::ptrdiff_t k = 0; k < kGroup; ++k) {
    const std::ptrdiff_t step = k / 4;
    if (layout.code_bits == 8) {
      out.codes[k] = row[step * kCodeRowBytes + k % 4];
      continue;
    }
    int code = row[step % 4 * kCodeRowBytes + k % 4] >> (step / 4 * 4) & 0x0F;
    if (layout.code_bits == 5) {
      const std::ptrdiff_t bit = col % 16 * 4 + k % 4;
      code |= (plane[(col / 16 * 8 + step) * 8 + bit / 8] >> (bit % 8) & 1) << 4;
    } else if (layout.code_bits == 6) {
      code |= (plane[step / 4 * kCodeRowBytes + col * 4 + k % 4] >> (step % 4 * 2) & 3) << 4;
    }
    out.codes[k] = static_cast<std::uint8_t>(code);
  }
  if (!layout.has_integer_scales) {
    out.scales[0] = half_at(group, col);
    out.scales[1] = out.scales[0];
    out.offset = layout.has_offsets ? half_at(group + kHalvesBytes, col) : 0;
    return out;
  }
  const float d = half_at(block, col);
  if (layout.has_offsets) {
    out.scales[0] = d * static_cast<float>(bytes[col]);
    out.scales[1] = out.scales[0];
    out.offset =
        -(half_at(block + kHalvesBytes, col) * static_cast<float>(bytes[kPanelCols + col]));
  } else {
    out.scales[0] = d * static_cast<float>(static_cast<std::int8_t>(bytes[col]));
    out.scales[1] = d * static_cast<float>(static_cast<std::int8_t>(bytes[kPanelCols + col]));
  }
  return out;
}

float read_float_value(DType dtype, const std::byte* panel, int k, int col) {
  const std::size_t at = static_cast<std::size_t>(k) * kPanelCols + static_cast<std::size_t>(col);
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, panel + at * sizeof(value), sizeof(value));
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, panel + at * sizeof(half), sizeof(half));
  return dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
}

void unpack_weight_row(const CpuWeight& weight, int row_idx, float* out) {
  HR_CHECK(weight.form == ScaleForm::kFile);
  const std::byte* panel = weight.panel(row_idx / kPanelCols);
  const int col = row_idx % kPanelCols;
  const PanelLayout layout = panel_layout(weight.dtype);
  if (layout.code_bits == 0) {
    for (int k = 0; k < weight.num_cols; ++k) {
      out[k] = read_float_value(weight.dtype, panel, k, col);
    }
    return;
  }
  for (int g = 0; g < weight.num_cols / kGroup; ++g) {
    const GroupColumn group = read_group_column(weight.dtype, panel, g, col);
    float* values = out + static_cast<std::ptrdiff_t>(g) * kGroup;
    for (int k = 0; k < kGroup; ++k) {
      const float scale = group.scales[k / 16];
      values[k] = layout.has_offsets
                      ? scale * static_cast<float>(group.codes[k]) + group.offset
                      : scale * static_cast<float>(group.codes[k] - layout.zero_point);
    }
  }
}

}  // namespace headrace
