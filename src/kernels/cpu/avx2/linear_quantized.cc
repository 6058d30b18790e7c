// Panels of quantized types: rows x 16 columns at a time. A step is 4 k: 32 code bytes for 8
// columns and 4 activation bytes, broadcast. vpmaddubsw adds pairs in 16 bits, saturating: codes of
// up to 5 bits may add four steps there (31 * 127 * 2 * 4 = 31496), codes of 6 bits two (63 * 127 *
// 2 * 2 = 32004). Q8_0 moves the weight's sign to the activation (128 * 127 * 2 = 32512, one step),
// which makes its sums those of the signed bytes: no zero term. Sums in float stay in memory, in
// the first-level cache.
#include <immintrin.h>

#include "kernels/cpu/avx2/linear_internal.h"

namespace headrace::avx2 {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kTileRows = 3;
constexpr int kPrefetch = 4096;

HR_INLINE __m256i load(const std::uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

HR_INLINE __m256 load_halves(const std::uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

HR_INLINE __m256 load_u8(const std::uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

HR_INLINE __m256 load_s8(const std::uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

HR_INLINE __m256i broadcast4(const std::int8_t* p) {
  std::int32_t four = 0;
  __builtin_memcpy(&four, p, sizeof(four));
  return _mm256_set1_epi32(four);
}

// A group of a packed panel of one type; `vec` counts vectors of 8 columns.
template <DType kType>
class PackedGroup {
 public:
  static constexpr PanelLayout kLayout = panel_layout(kType);
  static constexpr bool kHasOffsets = kLayout.has_offsets;
  static constexpr int kScales = kLayout.scales_per_group;
  static constexpr int kCodeBits = kLayout.code_bits;

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

  // Steps `step` and `step + 4`; 8-bit codes as signed bytes.
  template <std::ptrdiff_t kHalf>
  HR_INLINE __m256i codes(std::ptrdiff_t step, std::ptrdiff_t vec) const {
    const std::uint8_t* rows = group_ + kLayout.codes_at + vec * 32;
    if constexpr (kCodeBits == 8) {
      return _mm256_xor_si256(load(rows + (step + 4 * kHalf) * kCodeRowBytes),
                              _mm256_set1_epi8(-128));
    }
    const __m256i both = load(rows + step * kCodeRowBytes);
    const __m256i nibble =
        _mm256_and_si256(kHalf == 0 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
    if constexpr (kCodeBits == 5) {
      return _mm256_or_si256(nibble, fifth_bits(step + 4 * kHalf, vec));
    } else if constexpr (kCodeBits == 6) {
      const __m256i pairs = load(group_ + kLayout.plane_at + kHalf * kCodeRowBytes + vec * 32);
      const __m256i moved = step < 2 ? _mm256_slli_epi16(pairs, static_cast<int>(4 - 2 * step))
                                     : _mm256_srli_epi16(pairs, static_cast<int>(2 * step - 4));
      return _mm256_or_si256(nibble, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
    } else {
      return nibble;
    }
  }

  template <std::ptrdiff_t kHalf>
  HR_INLINE __m256 scale(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_integer_scales) {
      const __m256 d = load_halves(block_ + vec * 16);
      const std::uint8_t* integers = group_ + vec * 8;
      if constexpr (kHasOffsets) {
        return _mm256_mul_ps(d, load_u8(integers));
      } else {
        return _mm256_mul_ps(d, load_s8(integers + kHalf * kPanelCols));
      }
    } else {
      return load_halves(group_ + vec * 16);
    }
  }

  HR_INLINE __m256 offset(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_integer_scales) {
      const __m256 dmin = load_halves(block_ + kHalvesBytes + vec * 16);
      const __m256 product = _mm256_mul_ps(dmin, load_u8(group_ + kPanelCols + vec * 8));
      return _mm256_xor_ps(product, _mm256_set1_ps(-0.0F));
    } else {
      return load_halves(group_ + kHalvesBytes + vec * 16);
    }
  }

 private:
  // 32 bits to 16 in each byte whose bit is set.
  HR_INLINE __m256i fifth_bits(std::ptrdiff_t step, std::ptrdiff_t vec) const {
    std::int32_t bits = 0;
    __builtin_memcpy(
        &bits, group_ + kLayout.plane_at + (vec / 2 * 8 + step) * 8 + vec % 2 * 4, sizeof(bits));
    const __m256i spread = _mm256_setr_epi8(0,
                                            0,
                                            0,
                                            0,
                                            0,
                                            0,
                                            0,
                                            0,
                                            1,
                                            1,
                                            1,
                                            1,
                                            1,
                                            1,
                                            1,
                                            1,  //
                                            2,
                                            2,
                                            2,
                                            2,
                                            2,
                                            2,
                                            2,
                                            2,
                                            3,
                                            3,
                                            3,
                                            3,
                                            3,
                                            3,
                                            3,
                                            3);
    const __m256i select = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201));
    const __m256i bytes =
        _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread), select);
    return _mm256_and_si256(_mm256_cmpeq_epi8(bytes, select), _mm256_set1_epi8(16));
  }

  const std::uint8_t* block_;
  const std::uint8_t* group_;
};

// A group of an unpacked panel. kBits bounds the codes.
template <int kBits, bool kOffsets, int kScalesPerGroup>
class UnpackedGroup {
 public:
  static constexpr bool kHasOffsets = kOffsets;
  static constexpr int kScales = kScalesPerGroup;
  static constexpr int kCodeBits = kBits;

  HR_INLINE UnpackedGroup(const UnpackedPanel& panel, std::ptrdiff_t group_idx)
      : codes_(panel.codes + group_idx * 8 * kCodeRowBytes),
        scales_(panel.scales + group_idx * kScales * kPanelCols),
        offsets_(kOffsets ? panel.offsets + group_idx * kPanelCols : nullptr) {}

  HR_INLINE void prefetch() const {}

  template <std::ptrdiff_t kHalf>
  HR_INLINE __m256i codes(std::ptrdiff_t step, std::ptrdiff_t vec) const {
    return load(codes_ + (step + 4 * kHalf) * kCodeRowBytes + vec * 32);
  }
  template <std::ptrdiff_t kHalf>
  HR_INLINE __m256 scale(std::ptrdiff_t vec) const {
    return _mm256_loadu_ps(scales_ + (kScales == 2 ? kHalf * kPanelCols : 0) + vec * 8);
  }
  HR_INLINE __m256 offset(std::ptrdiff_t vec) const { return _mm256_loadu_ps(offsets_ + vec * 8); }

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
  __m256i v[kRows][2];
};

// Sums of 16 bits into sums of 32.
template <int kRows>
HR_INLINE void widen(const Sums<kRows>& words, Sums<kRows>& sums) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    sums.v[m][0] = _mm256_add_epi32(sums.v[m][0], _mm256_madd_epi16(words.v[m][0], ones));
    sums.v[m][1] = _mm256_add_epi32(sums.v[m][1], _mm256_madd_epi16(words.v[m][1], ones));
  }
}

template <int kBits>
HR_INLINE __m256i products(__m256i weights, __m256i codes) {
  if constexpr (kBits == 8) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(codes, weights));
  } else {
    return _mm256_maddubs_epi16(weights, codes);
  }
}

// Four steps of one half of a group for vectors vec and vec + 1.
template <std::ptrdiff_t kHalf, int kRows, typename Group>
HR_INLINE void dot_half(const Group& group,
                        std::ptrdiff_t vec,
                        const std::int8_t* codes,
                        std::int64_t stride,
                        Sums<kRows>& sums) {
  constexpr int kSteps = Group::kCodeBits <= 5 ? 4 : (Group::kCodeBits == 6 ? 2 : 1);
#pragma GCC unroll 4
  for (std::ptrdiff_t first = 0; first < 4; first += kSteps) {
    Sums<kRows> words;
#pragma GCC unroll 4
    for (std::ptrdiff_t step = first; step < first + kSteps; ++step) {
      const __m256i w0 = group.template codes<kHalf>(step, vec);
      const __m256i w1 = group.template codes<kHalf>(step, vec + 1);
#pragma GCC unroll 4
      for (std::ptrdiff_t m = 0; m < kRows; ++m) {
        const __m256i four = broadcast4(codes + m * stride + step * 4 + kHalf * 16);
        const __m256i p0 = products<Group::kCodeBits>(w0, four);
        const __m256i p1 = products<Group::kCodeBits>(w1, four);
        words.v[m][0] = step == first ? p0 : _mm256_add_epi16(words.v[m][0], p0);
        words.v[m][1] = step == first ? p1 : _mm256_add_epi16(words.v[m][1], p1);
      }
    }
    widen<kRows>(words, sums);
  }
}

template <int kRows, bool kZero>
HR_INLINE void start(Sums<kRows>& sums, const std::int32_t* zero_terms, std::int64_t stride) {
#pragma GCC unroll 4
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    const __m256i first =
        kZero ? _mm256_set1_epi32(zero_terms[m * stride]) : _mm256_setzero_si256();
    sums.v[m][0] = first;
    sums.v[m][1] = first;
  }
}

// Weight groups of 32.
template <int kRows, typename Group>
HR_INLINE void add_group(const Group& group,
                         std::ptrdiff_t vec,
                         const TileRows& rows,
                         std::ptrdiff_t group_idx,
                         float* acc) {
  constexpr bool kZero = !Group::kHasOffsets && Group::kCodeBits != 8;
  Sums<kRows> sums;
  start<kRows, kZero>(sums, rows.zero_terms + group_idx, rows.term_stride);
  const std::int8_t* codes = rows.codes + group_idx * kGroup;
  dot_half<0, kRows>(group, vec, codes, rows.code_stride, sums);
  dot_half<1, kRows>(group, vec, codes, rows.code_stride, sums);
#pragma GCC unroll 2
  for (std::ptrdiff_t i = 0; i < 2; ++i) {
    const __m256 scale = group.template scale<0>(vec + i);
#pragma GCC unroll 4
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      float* out = acc + m * kPanelCols + (vec + i) * 8;
      const __m256 product =
          _mm256_mul_ps(scale, _mm256_set1_ps(rows.scales[m * rows.group_stride + group_idx]));
      __m256 sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums.v[m][i]), product, _mm256_loadu_ps(out));
      if constexpr (Group::kHasOffsets) {
        const __m256 codes_sum =
            _mm256_set1_ps(rows.scaled_sums[m * rows.group_stride + group_idx]);
        sum = _mm256_fmadd_ps(group.offset(vec + i), codes_sum, sum);
      }
      _mm256_storeu_ps(out, sum);
    }
  }
}

// Weight groups of 16: two scaled sums, then the activation's scale.
template <int kRows, typename Group>
HR_INLINE void add_halves(const Group& group,
                          std::ptrdiff_t vec,
                          const TileRows& rows,
                          std::ptrdiff_t group_idx,
                          float* acc) {
  Sums<kRows> low;
  Sums<kRows> high;
  const std::int32_t* zero_terms = rows.zero_terms + group_idx * 2;
  const std::int8_t* codes = rows.codes + group_idx * kGroup;
  start<kRows, true>(low, zero_terms, rows.term_stride);
  dot_half<0, kRows>(group, vec, codes, rows.code_stride, low);
  start<kRows, true>(high, zero_terms + 1, rows.term_stride);
  dot_half<1, kRows>(group, vec, codes, rows.code_stride, high);
#pragma GCC unroll 2
  for (std::ptrdiff_t i = 0; i < 2; ++i) {
    const __m256 low_scale = group.template scale<0>(vec + i);
    const __m256 high_scale = group.template scale<1>(vec + i);
#pragma GCC unroll 4
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      float* out = acc + m * kPanelCols + (vec + i) * 8;
      __m256 both = _mm256_mul_ps(_mm256_cvtepi32_ps(low.v[m][i]), low_scale);
      both = _mm256_fmadd_ps(_mm256_cvtepi32_ps(high.v[m][i]), high_scale, both);
      const __m256 row_scale = _mm256_set1_ps(rows.scales[m * rows.group_stride + group_idx]);
      _mm256_storeu_ps(out, _mm256_fmadd_ps(both, row_scale, _mm256_loadu_ps(out)));
    }
  }
}

template <typename Group, int kRows, typename Panel>
HR_INLINE void tile(const PanelJob& job,
                    std::ptrdiff_t row_begin,
                    const Panel& panel,
                    int panel_group_begin) {
  const RowsView& all = job.rows;
  TileRows rows = {
      .codes = all.codes + row_begin * all.code_stride,
      .scales = all.scales + row_begin * all.group_stride,
      .scaled_sums = Group::kHasOffsets ? all.scaled_sums + row_begin * all.group_stride : nullptr,
      .zero_terms = Group::kHasOffsets ? nullptr : all.zero_terms + row_begin * all.term_stride,
      .code_stride = all.code_stride,
      .group_stride = all.group_stride,
      .term_stride = all.term_stride};
  float* acc = job.acc + row_begin * kPanelCols;
  const int group_end = job.k_end / kGroup;
  for (std::ptrdiff_t g = job.k_begin / kGroup; g < group_end; ++g) {
    const Group group(panel, g - panel_group_begin);
    group.prefetch();
    for (std::ptrdiff_t vec = 0; vec < kPanelCols / 8; vec += 2) {
      if constexpr (Group::kScales == 2) {
        add_halves<kRows>(group, vec, rows, g, acc);
      } else {
        add_group<kRows>(group, vec, rows, g, acc);
      }
    }
  }
}

template <typename Group, typename Panel>
HR_INLINE void all_rows(const PanelJob& job, const Panel& panel, int panel_group_begin) {
  int row = 0;
  for (; row + kTileRows <= job.rows.num_rows; row += kTileRows) {
    tile<Group, kTileRows>(job, row, panel, panel_group_begin);
  }
  if (job.rows.num_rows - row == 2) {
    tile<Group, 2>(job, row, panel, panel_group_begin);
  } else if (job.rows.num_rows - row == 1) {
    tile<Group, 1>(job, row, panel, panel_group_begin);
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
    for (std::ptrdiff_t vec = 0; vec < kPanelCols / 8; ++vec) {
#pragma GCC unroll 4
      for (std::ptrdiff_t step = 0; step < 4; ++step) {
        std::uint8_t* row = codes + step * kCodeRowBytes + vec * 32;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), group.template codes<0>(step, vec));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 4 * kCodeRowBytes),
                            group.template codes<1>(step, vec));
      }
      _mm256_storeu_ps(scales + vec * 8, group.template scale<0>(vec));
      if constexpr (Group::kScales == 2) {
        _mm256_storeu_ps(scales + kPanelCols + vec * 8, group.template scale<1>(vec));
      }
      if constexpr (Group::kHasOffsets) {
        _mm256_storeu_ps(offsets + vec * 8, group.offset(vec));
      }
    }
    codes += 8 * kCodeRowBytes;
    scales += Group::kScales * kPanelCols;
    offsets += kPanelCols;
  }
}

template <DType kType>
void dot_spread(const PanelJob& job, const UnpackedPanel& panel) {
  constexpr PanelLayout kLayout = panel_layout(kType);
  constexpr int kBits = kLayout.code_bits < 5 ? 5 : kLayout.code_bits;
  all_rows<UnpackedGroup<kBits, kLayout.has_offsets, kLayout.scales_per_group>>(
      job, panel, job.k_begin / kGroup);
}

struct TypeKernels {
  void (*dot)(const PanelJob&);
  void (*unpack)(const PanelJob&, const UnpackedPanel&);
  void (*dot_unpacked)(const PanelJob&, const UnpackedPanel&);
};

// The arithmetic of unpacked codes does not ask for the type, only for its kind: kKin is one of the
// kind.
template <DType kType, DType kKin>
constexpr TypeKernels kernels_of() {
  return {dot<kType>, unpack<kType>, dot_spread<kKin>};
}

// In the order of DType, from Q4_0 on.
constexpr TypeKernels kTypes[] = {kernels_of<DType::kQ4_0, DType::kQ5_0>(),
                                  kernels_of<DType::kQ4_1, DType::kQ5_1>(),
                                  kernels_of<DType::kQ5_0, DType::kQ5_0>(),
                                  kernels_of<DType::kQ5_1, DType::kQ5_1>(),
                                  kernels_of<DType::kQ8_0, DType::kQ8_0>(),
                                  kernels_of<DType::kQ4_K, DType::kQ5_1>(),
                                  kernels_of<DType::kQ5_K, DType::kQ5_1>(),
                                  kernels_of<DType::kQ6_K, DType::kQ6_K>()};

const TypeKernels& of(DType dtype) {
  return kTypes[static_cast<int>(dtype) - static_cast<int>(DType::kQ4_0)];
}

}  // namespace

void dot_quantized(const PanelJob& job) { of(job.dtype).dot(job); }
void unpack_quantized(const PanelJob& job, const UnpackedPanel& out) {
  of(job.dtype).unpack(job, out);
}
void dot_unpacked_quantized(const PanelJob& job, const UnpackedPanel& panel) {
  of(job.dtype).dot_unpacked(job, panel);
}

}  // namespace headrace::avx2
