// Panels of quantized types: rows x 32 columns. A step is 4 k: one load of 64 code bytes for 16
// columns, one broadcast of 4 activation bytes by the load port, one vpdpbusd; no shuffle on the
// way. The sum starts at -zero * sum of codes, so an offset code costs nothing. A group of 32 ends
// with convert, scale product and fused multiply-add, and one more for types with offsets: 8 dot
// products of 11 or 12 instructions. Few rows read the panel as packed (bound by memory, with
// prefetch); many read it unpacked, chunk by chunk in the first-level cache. Both are one template,
// so that the arithmetic is one.
#include <immintrin.h>

#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kPrefetch = 4096;
constexpr int kMaxTile = 6;

// GCC 12 spills the tile when this is the intrinsic.
HR_INLINE __m512i dot4(__m512i acc, __m512i weights, __m512i codes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(weights), "v"(codes));
  return acc;
}

HR_INLINE __m512i load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }

HR_INLINE __m512 load_halves(const std::uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

HR_INLINE __m512 load_u8(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

HR_INLINE __m512 load_s8(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

HR_INLINE __m512i broadcast4(const std::int8_t* p) {
  std::int32_t four = 0;
  __builtin_memcpy(&four, p, sizeof(four));
  return _mm512_set1_epi32(four);
}

// A group of a packed panel of one type.
template <DType kType>
class PackedGroup {
 public:
  static constexpr PanelLayout kLayout = panel_layout(kType);
  static constexpr bool kHasOffsets = kLayout.has_offsets;
  static constexpr int kScales = kLayout.scales_per_group;

  HR_INLINE PackedGroup(const std::byte* panel, std::ptrdiff_t group_idx) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(panel);
    block_ = bytes + group_idx / kLayout.groups_per_block * kLayout.block_bytes;
    group_ =
        block_ + kLayout.header_bytes + group_idx % kLayout.groups_per_block * kLayout.group_bytes;
  }

  HR_INLINE void prefetch() const {
    for (std::ptrdiff_t i = 0; i < kLayout.group_bytes; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(group_ + i + kPrefetch), _MM_HINT_T0);
    }
  }

  // Steps `step` and `step + 4` of vector `vec`.
  template <std::ptrdiff_t kHalf>
  HR_INLINE __m512i codes(std::ptrdiff_t step, std::ptrdiff_t vec) const {
    const std::uint8_t* rows = group_ + kLayout.codes_at + vec * 64;
    if constexpr (kLayout.code_bits == 8) {
      return load(rows + (step + 4 * kHalf) * kCodeRowBytes);
    }
    const __m512i low_mask = _mm512_set1_epi8(15);
    const __m512i both = load(rows + step * kCodeRowBytes);
    const __m512i nibble =
        _mm512_and_si512(kHalf == 0 ? both : _mm512_srli_epi16(both, 4), low_mask);
    if constexpr (kLayout.code_bits == 5) {
      const std::uint8_t* plane = group_ + kLayout.plane_at + (vec * 8 + step + 4 * kHalf) * 8;
      std::uint64_t bits = 0;
      __builtin_memcpy(&bits, plane, sizeof(bits));
      return _mm512_mask_add_epi8(nibble, bits, nibble, _mm512_set1_epi8(16));
    } else if constexpr (kLayout.code_bits == 6) {
      const __m512i pairs = load(group_ + kLayout.plane_at + kHalf * kCodeRowBytes + vec * 64);
      const __m512i moved = step < 2
                                ? _mm512_slli_epi16(pairs, static_cast<unsigned>(4 - 2 * step))
                                : _mm512_srli_epi16(pairs, static_cast<unsigned>(2 * step - 4));
      return _mm512_ternarylogic_epi32(
          nibble, moved, _mm512_set1_epi8(0x30), 0xF8);  // nibble | (moved & mask)
    } else {
      return nibble;
    }
  }

  template <std::ptrdiff_t kHalf>
  HR_INLINE __m512 scale(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_integer_scales) {
      const __m512 d = load_halves(block_ + vec * 32);
      const std::uint8_t* integers = group_ + vec * 16;
      if constexpr (kHasOffsets) {
        return _mm512_mul_ps(d, load_u8(integers));
      } else {
        return _mm512_mul_ps(d, load_s8(integers + kHalf * kPanelCols));
      }
    } else {
      return load_halves(group_ + vec * 32);
    }
  }

  HR_INLINE __m512 offset(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_integer_scales) {
      const __m512 dmin = load_halves(block_ + kHalvesBytes + vec * 32);
      const __m512 product = _mm512_mul_ps(dmin, load_u8(group_ + kPanelCols + vec * 16));
      return _mm512_xor_ps(product, _mm512_set1_ps(-0.0F));
    } else {
      return load_halves(group_ + kHalvesBytes + vec * 32);
    }
  }

 private:
  const std::uint8_t* block_;
  const std::uint8_t* group_;
};

// A group of an unpacked panel.
template <bool kOffsets, int kScalesPerGroup>
class UnpackedGroup {
 public:
  static constexpr bool kHasOffsets = kOffsets;
  static constexpr int kScales = kScalesPerGroup;

  HR_INLINE UnpackedGroup(const UnpackedPanel& panel, std::ptrdiff_t group_idx)
      : codes_(panel.codes + group_idx * 8 * kCodeRowBytes),
        scales_(panel.scales + group_idx * kScales * kPanelCols),
        offsets_(kOffsets ? panel.offsets + group_idx * kPanelCols : nullptr) {}

  HR_INLINE void prefetch() const {}

  template <std::ptrdiff_t kHalf>
  HR_INLINE __m512i codes(std::ptrdiff_t step, std::ptrdiff_t vec) const {
    return load(codes_ + (step + 4 * kHalf) * kCodeRowBytes + vec * 64);
  }
  template <std::ptrdiff_t kHalf>
  HR_INLINE __m512 scale(std::ptrdiff_t vec) const {
    return _mm512_loadu_ps(scales_ + (kScales == 2 ? kHalf * kPanelCols : 0) + vec * 16);
  }
  HR_INLINE __m512 offset(std::ptrdiff_t vec) const { return _mm512_loadu_ps(offsets_ + vec * 16); }

 private:
  const std::uint8_t* codes_;
  const float* scales_;
  const float* offsets_;
};

// Rows of a tile, from its first one on.
struct TileRows {
  const std::int8_t* codes;
  const float* scales;
  const float* scaled_sums;
  const std::int32_t* zero_terms;
  std::int64_t code_stride;
  std::int64_t group_stride;
  std::int64_t term_stride;
};

template <int kRows>
struct Sums {
  __m512i v[kRows][2];
};
template <int kRows>
struct Floats {
  __m512 v[kRows][2];
};

// Four steps of one half of a group: k 16 kHalf .. 16 kHalf + 15.
template <std::ptrdiff_t kHalf, int kRows, typename Group>
HR_INLINE void dot_half(const Group& group,
                        const std::int8_t* codes,
                        std::int64_t stride,
                        Sums<kRows>& sums) {
#pragma GCC unroll 4
  for (std::ptrdiff_t step = 0; step < 4; ++step) {
    const __m512i w0 = group.template codes<kHalf>(step, 0);
    const __m512i w1 = group.template codes<kHalf>(step, 1);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const __m512i four = broadcast4(codes + m * stride + step * 4 + kHalf * 16);
      sums.v[m][0] = dot4(sums.v[m][0], w0, four);
      sums.v[m][1] = dot4(sums.v[m][1], w1, four);
    }
  }
}

template <int kRows, bool kZero>
HR_INLINE void start(Sums<kRows>& sums, const std::int32_t* zero_terms, std::int64_t stride) {
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    const __m512i first =
        kZero ? _mm512_set1_epi32(zero_terms[m * stride]) : _mm512_setzero_si512();
    sums.v[m][0] = first;
    sums.v[m][1] = first;
  }
}

// Weight groups of 32.
template <int kRows, typename Group>
HR_INLINE void add_group(const Group& group,
                         const TileRows& rows,
                         std::ptrdiff_t group_idx,
                         Floats<kRows>& acc) {
  Sums<kRows> sums;
  start<kRows, !Group::kHasOffsets>(sums, rows.zero_terms + group_idx, rows.term_stride);
  const std::int8_t* codes = rows.codes + group_idx * kGroup;
  dot_half<0, kRows>(group, codes, rows.code_stride, sums);
  dot_half<1, kRows>(group, codes, rows.code_stride, sums);
#pragma GCC unroll 2
  for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
    const __m512 scale = group.template scale<0>(vec);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const __m512 product =
          _mm512_mul_ps(scale, _mm512_set1_ps(rows.scales[m * rows.group_stride + group_idx]));
      acc.v[m][vec] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.v[m][vec]), product, acc.v[m][vec]);
    }
    if constexpr (Group::kHasOffsets) {
      const __m512 offset = group.offset(vec);
#pragma GCC unroll 8
      for (std::ptrdiff_t m = 0; m < kRows; ++m) {
        const __m512 sum = _mm512_set1_ps(rows.scaled_sums[m * rows.group_stride + group_idx]);
        acc.v[m][vec] = _mm512_fmadd_ps(offset, sum, acc.v[m][vec]);
      }
    }
  }
}

// Weight groups of 16: two scaled sums, then the activation's scale.
template <int kRows, typename Group>
HR_INLINE void add_halves(const Group& group,
                          const TileRows& rows,
                          std::ptrdiff_t group_idx,
                          Floats<kRows>& acc) {
  Sums<kRows> sums;
  Floats<kRows> scaled;
  const std::int32_t* zero_terms = rows.zero_terms + group_idx * 2;
  const std::int8_t* codes = rows.codes + group_idx * kGroup;
  start<kRows, true>(sums, zero_terms, rows.term_stride);
  dot_half<0, kRows>(group, codes, rows.code_stride, sums);
#pragma GCC unroll 2
  for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
    const __m512 scale = group.template scale<0>(vec);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      scaled.v[m][vec] = _mm512_mul_ps(_mm512_cvtepi32_ps(sums.v[m][vec]), scale);
    }
  }
  start<kRows, true>(sums, zero_terms + 1, rows.term_stride);
  dot_half<1, kRows>(group, codes, rows.code_stride, sums);
#pragma GCC unroll 2
  for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
    const __m512 scale = group.template scale<1>(vec);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const __m512 both =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.v[m][vec]), scale, scaled.v[m][vec]);
      const __m512 row_scale = _mm512_set1_ps(rows.scales[m * rows.group_stride + group_idx]);
      acc.v[m][vec] = _mm512_fmadd_ps(both, row_scale, acc.v[m][vec]);
    }
  }
}

HR_INLINE void fetch_ahead(const std::byte* ahead, int num_lines) {
  for (int i = 0; i < num_lines; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + std::ptrdiff_t{64} * i), _MM_HINT_T1);
  }
}

// kRows rows against a panel; source(g) is group g of it, counted like the rows' groups.
template <typename Group, int kRows, typename Panel>
HR_INLINE void tile(const PanelJob& job,
                    std::ptrdiff_t row_begin,
                    const Panel& panel,
                    int panel_group_begin) {
  constexpr std::ptrdiff_t kFullTile = Group::kScales == 2 ? 4 : kMaxTile;
  const std::ptrdiff_t group_bytes = panel_layout(job.dtype).group_bytes;
  const std::byte* ahead =
      job.ahead + std::ptrdiff_t{64} * job.ahead_lines * (row_begin / kFullTile);
  const RowsView& all = job.rows;
  TileRows rows = {
      .codes = all.codes + row_begin * all.code_stride,
      .scales = all.scales + row_begin * all.group_stride,
      .scaled_sums = Group::kHasOffsets ? all.scaled_sums + row_begin * all.group_stride : nullptr,
      .zero_terms = Group::kHasOffsets ? nullptr : all.zero_terms + row_begin * all.term_stride,
      .code_stride = all.code_stride,
      .group_stride = all.group_stride,
      .term_stride = all.term_stride};
  float* out = job.acc + row_begin * kPanelCols;
  Floats<kRows> acc;
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    acc.v[m][0] = _mm512_loadu_ps(out + m * kPanelCols);
    acc.v[m][1] = _mm512_loadu_ps(out + m * kPanelCols + 16);
  }
  const int group_end = job.k_end / kGroup;
  for (std::ptrdiff_t g = job.k_begin / kGroup; g < group_end; ++g) {
    const Group group(panel, g - panel_group_begin);
    if (job.ahead_lines == 0) {
      group.prefetch();
    } else {
      fetch_ahead(ahead, job.ahead_lines);
      ahead += group_bytes;
    }
    if constexpr (Group::kScales == 2) {
      add_halves<kRows>(group, rows, g, acc);
    } else {
      add_group<kRows>(group, rows, g, acc);
    }
  }
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    _mm512_storeu_ps(out + m * kPanelCols, acc.v[m][0]);
    _mm512_storeu_ps(out + m * kPanelCols + 16, acc.v[m][1]);
  }
}

template <typename Group, typename Panel>
HR_INLINE void all_rows(const PanelJob& job, const Panel& panel, int panel_group_begin) {
  constexpr int kTileRows = Group::kScales == 2 ? 4 : kMaxTile;
  int row = 0;
  for (; row + kTileRows <= job.rows.num_rows; row += kTileRows) {
    tile<Group, kTileRows>(job, row, panel, panel_group_begin);
  }
  switch (job.rows.num_rows - row) {
    case 5:
      return tile < Group, kTileRows == 6 ? 5 : 1 > (job, row, panel, panel_group_begin);
    case 4:
      return tile < Group, kTileRows == 6 ? 4 : 1 > (job, row, panel, panel_group_begin);
    case 3:
      return tile<Group, 3>(job, row, panel, panel_group_begin);
    case 2:
      return tile<Group, 2>(job, row, panel, panel_group_begin);
    case 1:
      return tile<Group, 1>(job, row, panel, panel_group_begin);
    default:
      return;
  }
}

template <DType kType>
void dot(const PanelJob& job) {
  all_rows<PackedGroup<kType>>(job, job.panel, 0);
}

template <DType kType>
void unpack(const PanelJob& job, const UnpackedPanel& out) {
  using Group = PackedGroup<kType>;
  std::uint8_t* codes = out.codes;
  float* scales = out.scales;
  float* offsets = out.offsets;
  for (std::ptrdiff_t g = job.k_begin / kGroup; g < job.k_end / kGroup; ++g) {
    const Group group(job.panel, g);
    group.prefetch();
#pragma GCC unroll 2
    for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
#pragma GCC unroll 4
      for (std::ptrdiff_t step = 0; step < 4; ++step) {
        std::uint8_t* row = codes + step * kCodeRowBytes + vec * 64;
        _mm512_storeu_si512(row, group.template codes<0>(step, vec));
        _mm512_storeu_si512(row + 4 * kCodeRowBytes, group.template codes<1>(step, vec));
      }
      _mm512_storeu_ps(scales + vec * 16, group.template scale<0>(vec));
      if constexpr (Group::kScales == 2) {
        _mm512_storeu_ps(scales + kPanelCols + vec * 16, group.template scale<1>(vec));
      }
      if constexpr (Group::kHasOffsets) {
        _mm512_storeu_ps(offsets + vec * 16, group.offset(vec));
      }
    }
    codes += 8 * kCodeRowBytes;
    scales += Group::kScales * kPanelCols;
    offsets += kPanelCols;
  }
}

struct TypeKernels {
  void (*dot)(const PanelJob&);
  void (*unpack)(const PanelJob&, const UnpackedPanel&);
};

template <DType kType>
constexpr TypeKernels kernels_of() {
  return {dot<kType>, unpack<kType>};
}

// In the order of DType, from Q4_0 on.
constexpr TypeKernels kTypes[] = {kernels_of<DType::kQ4_0>(),
                                  kernels_of<DType::kQ4_1>(),
                                  kernels_of<DType::kQ5_0>(),
                                  kernels_of<DType::kQ5_1>(),
                                  kernels_of<DType::kQ8_0>(),
                                  kernels_of<DType::kQ4_K>(),
                                  kernels_of<DType::kQ5_K>(),
                                  kernels_of<DType::kQ6_K>()};

const TypeKernels& of(DType dtype) {
  return kTypes[static_cast<int>(dtype) - static_cast<int>(DType::kQ4_0)];
}

void dot_unpacked_zero(const PanelJob& job, const UnpackedPanel& panel) {
  all_rows<UnpackedGroup<false, 1>>(job, panel, job.k_begin / kGroup);
}
void dot_unpacked_offsets(const PanelJob& job, const UnpackedPanel& panel) {
  all_rows<UnpackedGroup<true, 1>>(job, panel, job.k_begin / kGroup);
}
void dot_unpacked_halves(const PanelJob& job, const UnpackedPanel& panel) {
  all_rows<UnpackedGroup<false, 2>>(job, panel, job.k_begin / kGroup);
}

}  // namespace

void dot_quantized(const PanelJob& job) { of(job.dtype).dot(job); }
void unpack_quantized(const PanelJob& job, const UnpackedPanel& out) {
  of(job.dtype).unpack(job, out);
}

void dot_unpacked_quantized(const PanelJob& job, const UnpackedPanel& panel) {
  const PanelLayout layout = panel_layout(job.dtype);
  if (layout.scales_per_group == 2) {
    dot_unpacked_halves(job, panel);
  } else if (layout.has_offsets) {
    dot_unpacked_offsets(job, panel);
  } else {
    dot_unpacked_zero(job, panel);
  }
}

}  // namespace headrace::avx512vnni
