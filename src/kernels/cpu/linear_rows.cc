#include "kernels/cpu/linear_rows.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "kernels/cpu/linear.h"

namespace headrace {
namespace {

// Zero terms differ by zero point and by the size of the weight's groups.
struct ZeroKind {
  int zero_point;
  int terms_per_group;
};
constexpr std::array<ZeroKind, 4> kZeroKinds = {{{8, 1}, {16, 1}, {128, 1}, {32, 2}}};

int zero_kind(const PanelLayout& layout) {
  for (int i = 0; i < static_cast<int>(kZeroKinds.size()); ++i) {
    if (kZeroKinds[i].zero_point == layout.zero_point &&
        kZeroKinds[i].terms_per_group == layout.scales_per_group) {
      return i;
    }
  }
  return -1;
}

// Rows of codes start on different cache sets, also where K is a power of two.
constexpr std::int64_t kCodePadding = 64;
// Values below which waking the workers costs more than it saves.
constexpr std::int64_t kSerialValues = 8192;

}  // namespace

void GrowingBuffer::reserve(std::size_t bytes, MemoryCounters& counters) {
  if (bytes <= buffer_.bytes()) {
    return;
  }
  buffer_ = Buffer();
  Result<Buffer> grown = allocate_counted(bytes, MemoryPart::kWorkspace, counters);
  HR_CHECK(grown.ok());
  buffer_ = std::move(grown).value();
}

void LinearRows::Needs::add(const CpuWeight& weight) {
  if (weight.form == ScaleForm::kPaired) {
    paired_ = true;
    return;
  }
  HR_CHECK(!codes_ || weight.num_planes == num_planes_);
  const PanelLayout layout = panel_layout(weight.dtype);
  if (layout.code_bits == 0) {
    floats_ = true;
    return;
  }
  codes_ = true;
  num_planes_ = weight.num_planes;
  if (layout.has_offsets) {
    scaled_sums_ = true;
  } else {
    const int kind = zero_kind(layout);
    HR_CHECK(kind >= 0);
    zero_terms_[kind] = true;
  }
}

void LinearRows::prepare(const LinearInput& input, int num_cols, const Needs& needs) {
  const auto rows = static_cast<std::size_t>(input.num_rows);
  const auto cols = static_cast<std::size_t>(num_cols);
  num_cols_ = num_cols;
  x_ = input.x;
  if (input.norm_weight != nullptr) {
    normalized_ = normalized_buffer_.get<float>(rows * cols, counters_);
    x_ = normalized_;
  }
  if (needs.codes_) {
    const std::size_t groups = cols / kGroup;
    const std::size_t code_rows = rows * static_cast<std::size_t>(needs.num_planes_);
    if (needs.num_planes_ == 2) {
      rest_ = rest_buffer_.get<float>(rows * cols, counters_);
    }
    codes_ = codes_buffer_.get<std::int8_t>(code_rows * (cols + kCodePadding), counters_);
    scales_ = scales_buffer_.get<float>(code_rows * groups, counters_);
    sums_ = sums_buffer_.get<std::int32_t>(code_rows * groups * 2, counters_);
    if (needs.scaled_sums_) {
      scaled_sums_ = scaled_sums_buffer_.get<float>(code_rows * groups, counters_);
    }
    for (std::size_t kind = 0; kind < kZeroKinds.size(); ++kind) {
      if (needs.zero_terms_[kind]) {
        const auto terms = groups * static_cast<std::size_t>(kZeroKinds[kind].terms_per_group);
        zero_terms_[kind] =
            zero_terms_buffer_[kind].get<std::int32_t>(code_rows * terms, counters_);
      }
    }
  }
  if (needs.paired_) {
    HR_CHECK(needs.num_planes_ == 1);
    reserve_paired(rows);
  }
  if (!needs.codes_ && !needs.paired_ && input.norm_weight == nullptr) {
    return;
  }
  const std::int64_t values = std::int64_t{input.num_rows} * num_cols;
  const int num_tasks =
      values <= kSerialValues
          ? 1
          : std::min(input.num_rows, pool_.num_threads() == 1 ? 1 : pool_.num_threads() * 8);
  pool_.run(num_tasks, [&](int task, int /*worker*/) {
    const auto begin = static_cast<int>(std::int64_t{input.num_rows} * task / num_tasks);
    const auto end = static_cast<int>(std::int64_t{input.num_rows} * (task + 1) / num_tasks);
    for (int row = begin; row < end; ++row) {
      prepare_row(input, needs, row);
    }
  });
}

void LinearRows::prepare_row(const LinearInput& input, const Needs& needs, int row_idx) const {
  const std::int64_t row = row_idx;
  const float* x = input.x + row * num_cols_;
  if (input.norm_weight != nullptr) {
    float* y = normalized_ + row * num_cols_;
    kernels_.normalize_row(x, input.norm_weight, input.norm_eps, num_cols_, y);
    x = y;
  }
  if (needs.paired_) {
    kernels_.quantize_paired_row(x, num_cols_, paired_.row(row));
  }
  if (!needs.codes_) {
    return;
  }
  quantize(x, needs, row_idx * needs.num_planes_);
  if (needs.num_planes_ == 2) {
    quantize(leave_rest(x, row_idx), needs, row_idx * 2 + 1);
  }
}

// x less what its codes (row 2 * row_idx) stand for.
float* LinearRows::leave_rest(const float* x, int row_idx) const {
  const std::int64_t row = row_idx;
  const std::int8_t* codes = codes_ + row * 2 * (num_cols_ + kCodePadding);
  const float* scales = scales_ + row * 2 * (num_cols_ / kGroup);
  float* rest = rest_ + row * num_cols_;
  for (int k = 0; k < num_cols_; ++k) {
    rest[k] = x[k] - scales[k / kGroup] * static_cast<float>(codes[k]);
  }
  return rest;
}

void LinearRows::quantize(const float* x, const Needs& needs, int code_row) const {
  const std::int64_t row = code_row;
  const std::int64_t groups = num_cols_ / kGroup;
  float* scales = scales_ + row * groups;
  std::int32_t* sums = sums_ + row * groups * 2;
  kernels_.quantize_row(x, num_cols_, codes_ + row * (num_cols_ + kCodePadding), scales, sums);
  if (needs.scaled_sums_) {
    for (std::int64_t g = 0; g < groups; ++g) {
      scaled_sums_[row * groups + g] =
          scales[g] * static_cast<float>(sums[2 * g] + sums[2 * g + 1]);
    }
  }
  for (std::size_t kind = 0; kind < kZeroKinds.size(); ++kind) {
    if (!needs.zero_terms_[kind]) {
      continue;
    }
    const ZeroKind zero = kZeroKinds[kind];
    std::int32_t* terms = zero_terms_[kind] + row * groups * zero.terms_per_group;
    for (std::int64_t i = 0; i < groups * zero.terms_per_group; ++i) {
      const std::int32_t sum = zero.terms_per_group == 2 ? sums[i] : sums[2 * i] + sums[2 * i + 1];
      terms[i] = -zero.zero_point * sum;
    }
  }
}

PairedRow LinearRows::PairedRows::row(std::int64_t idx) const {
  const std::int64_t tile = idx / kTileRows;
  const std::int64_t own = idx % kTileRows;
  return {.codes = first.codes + tile * code_stride + own * kPair,
          .integer_scales = first.integer_scales + tile * group_stride + own * 2,
          .integer_sums = first.integer_sums + tile * group_stride + own * 2,
          .zero_terms = first.zero_terms + tile * group_stride + own * 2,
          .units = first.units + tile * unit_stride + own};
}

void LinearRows::reserve_paired(std::size_t num_rows) {
  const std::int64_t pairs = (num_cols_ + kPair - 1) / kPair;
  paired_.code_stride = pairs * kPair * kTileRows + kCodePadding;
  paired_.group_stride = 2 * pairs * kTileRows;
  paired_.unit_stride = (pairs + kPairsPerBlock - 1) / kPairsPerBlock * kTileRows;
  const std::size_t tiles = (num_rows + kTileRows - 1) / kTileRows;
  const std::size_t groups = tiles * static_cast<std::size_t>(paired_.group_stride);
  const std::size_t units = tiles * static_cast<std::size_t>(paired_.unit_stride);
  const std::size_t codes = tiles * static_cast<std::size_t>(paired_.code_stride);
  paired_.first = {.codes = paired_.codes.get<std::int8_t>(codes, counters_),
                   .integer_scales = paired_.integer_scales.get<std::int16_t>(groups, counters_),
                   .integer_sums = paired_.integer_sums.get<std::int16_t>(groups, counters_),
                   .zero_terms = paired_.zero_terms.get<std::int32_t>(groups, counters_),
                   .units = paired_.units.get<float>(units, counters_)};
}

RowsView LinearRows::paired_view(std::int64_t begin, int num_rows) const {
  HR_DCHECK(begin % kTileRows == 0);
  const PairedRow row = paired_.row(begin);
  return {.codes = row.codes,
          .code_stride = paired_.code_stride,
          .zero_terms = row.zero_terms,
          .group_stride = paired_.group_stride,
          .integer_scales = row.integer_scales,
          .integer_sums = row.integer_sums,
          .units = row.units,
          .unit_stride = paired_.unit_stride,
          .num_rows = num_rows};
}

RowsView LinearRows::view(const CpuWeight& weight, int begin, int num_rows) const {
  if (weight.form == ScaleForm::kPaired) {
    return paired_view(begin, num_rows);
  }
  const DType dtype = weight.dtype;
  const PanelLayout layout = panel_layout(dtype);
  RowsView view;
  view.num_rows = num_rows;
  if (layout.code_bits == 0) {
    view.x_stride = num_cols_;
    view.x = x_ + begin * view.x_stride;
    return view;
  }
  view.code_stride = num_cols_ + kCodePadding;
  view.codes = codes_ + begin * view.code_stride;
  view.group_stride = num_cols_ / kGroup;
  view.scales = scales_ + begin * view.group_stride;
  if (layout.has_offsets) {
    view.scaled_sums = scaled_sums_ + begin * view.group_stride;
  } else {
    view.term_stride = view.group_stride * layout.scales_per_group;
    view.zero_terms = zero_terms_[zero_kind(layout)] + begin * view.term_stride;
  }
  return view;
}

}  // namespace headrace
