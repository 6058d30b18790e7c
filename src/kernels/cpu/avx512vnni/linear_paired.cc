// Panels with paired scales: 4 rows x 32 columns. A step of a pair is 8 bytes of codes in one
// broadcast by the load port and four vectors of weights, 8 columns x 2 groups each. A pair ends
// with one pack to 16 bits, one rounded product of the integer scales and one 16-bit dot product
// for each 16 vpdpbusd; a block of 256 with convert, product of units and fused multiply-add: 64
// dot products of 79 instructions of the two ports. Offsets are a product of their own with K / 32
// terms: 8 more. Few rows read the panel as packed (bound by memory, with prefetch); many read it
// unpacked, chunk by chunk in the first-level cache.
#include <immintrin.h>

#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kPrefetch = 4096;
constexpr int kTileRows = 4;
constexpr std::ptrdiff_t kUnpackedPairBytes = 8 * kPairedRowBytes;

// GCC 12 spills the tile when these are the intrinsics.
HR_INLINE __m512i dot4(__m512i acc, __m512i weights, __m512i codes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(weights), "v"(codes));
  return acc;
}
HR_INLINE __m512i dot2(__m512i acc, __m512i a, __m512i b) {
  asm("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
  return acc;
}

template <typename T>
HR_INLINE T load_scalar(const void* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(value));
  return value;
}

HR_INLINE __m512 load_halves(const std::uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

HR_INLINE __m512 load_u8(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

HR_INLINE void prefetch_ahead(const std::uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p + kPrefetch), _MM_HINT_T0);
}

// A pair of a packed panel of one type.
template <DType kType>
class PackedPair {
 public:
  static constexpr PairedLayout kLayout = paired_layout(kType);

  HR_INLINE PackedPair(const std::byte* panel, std::ptrdiff_t pair_idx) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(panel);
    header_ = bytes + kLayout.header_at(pair_idx);
    pair_ = bytes + kLayout.pair_at(pair_idx);
  }

  // Scales and offsets; codes() does its own, so that no burst fills the line buffers.
  HR_INLINE void prefetch() const {
    for (std::ptrdiff_t i = 0; i < kLayout.codes_at; i += 64) {
      prefetch_ahead(pair_ + i);
    }
  }

  // Steps `step` and `step + 4` of half `half` of vector `vec`.
  template <std::ptrdiff_t kHigh>
  HR_INLINE __m512i codes(std::ptrdiff_t step, std::ptrdiff_t vec, std::ptrdiff_t half) const {
    const std::uint8_t* row = pair_ + kLayout.codes_at + step * kPairedRowBytes;
    const std::uint8_t* at = row + vec * 128 + half * 64;
    if constexpr (kHigh == 0) {
      prefetch_ahead(at);
    }
    const __m512i both = _mm512_loadu_si512(at);
    return _mm512_and_si512(kHigh == 0 ? both : _mm512_srli_epi16(both, 4), _mm512_set1_epi8(15));
  }

  HR_INLINE __m512i scales(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_byte_scales) {
      const auto* bytes = reinterpret_cast<const __m256i*>(pair_ + vec * 32);
      return _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes)), 7);
    } else {
      return _mm512_loadu_si512(pair_ + vec * 64);
    }
  }

  HR_INLINE __m512 unit(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_byte_scales) {
      return _mm512_mul_ps(load_halves(header_ + vec * 32), _mm512_set1_ps(1.0F / 128));
    } else {
      return _mm512_loadu_ps(header_ + vec * 64);
    }
  }

  template <std::ptrdiff_t kGroupOfPair>
  HR_INLINE __m512 offset(std::ptrdiff_t vec) const {
    const __m512i both = scales(vec);
    const __m512i scale = kGroupOfPair == 0 ? _mm512_srai_epi32(_mm512_slli_epi32(both, 16), 16)
                                            : _mm512_srai_epi32(both, 16);
    const __m512 eight = _mm512_mul_ps(unit(vec), _mm512_set1_ps(8));
    const std::ptrdiff_t first = kGroupOfPair * kPanelCols + vec * 16;
    const std::uint8_t* offsets = pair_ + kLayout.offsets_at;
    __m512 least;
    if constexpr (kLayout.has_byte_scales) {
      const __m512 dmin = load_halves(header_ + kPanelCols * 2 + vec * 32);
      const __m512 product = _mm512_mul_ps(dmin, load_u8(offsets + first));
      least = _mm512_xor_ps(product, _mm512_set1_ps(-0.0F));
    } else {
      least = load_halves(offsets + 2 * first);
    }
    return _mm512_fmadd_ps(eight, _mm512_cvtepi32_ps(scale), least);
  }

 private:
  const std::uint8_t* header_;
  const std::uint8_t* pair_;
};

// A pair of an unpacked panel; pair_idx counts from the panel's first.
class UnpackedPair {
 public:
  HR_INLINE UnpackedPair(const UnpackedPairs& panel, std::ptrdiff_t pair_idx)
      : codes_(panel.codes + pair_idx * kUnpackedPairBytes),
        scales_(panel.scales + pair_idx * 2 * kPanelCols) {}

  HR_INLINE void prefetch() const {}

  template <std::ptrdiff_t kHigh>
  HR_INLINE __m512i codes(std::ptrdiff_t step, std::ptrdiff_t vec, std::ptrdiff_t half) const {
    return _mm512_loadu_si512(codes_ + (step + 4 * kHigh) * kPairedRowBytes + vec * 128 +
                              half * 64);
  }
  HR_INLINE __m512i scales(std::ptrdiff_t vec) const {
    return _mm512_loadu_si512(scales_ + vec * 32);
  }

 private:
  const std::uint8_t* codes_;
  const std::int16_t* scales_;
};

// What the tile reads its pairs and units from.
template <DType kType>
struct PackedPanel {
  const std::byte* panel;
  HR_INLINE PackedPair<kType> pair(std::ptrdiff_t idx) const { return {panel, idx}; }
  HR_INLINE __m512 unit(std::ptrdiff_t pair_idx, std::ptrdiff_t vec) const {
    return pair(pair_idx).unit(vec);
  }
};

struct ChunkPanel {
  const UnpackedPairs* panel;
  std::ptrdiff_t first_pair;
  HR_INLINE UnpackedPair pair(std::ptrdiff_t idx) const { return {*panel, idx - first_pair}; }
  HR_INLINE __m512 unit(std::ptrdiff_t pair_idx, std::ptrdiff_t vec) const {
    const std::ptrdiff_t block = pair_idx / kPairsPerBlock - first_pair / kPairsPerBlock;
    return _mm512_loadu_ps(panel->units + block * kPanelCols + vec * 16);
  }
};

// Rows of a tile, from its first one on.
struct TileRows {
  const std::int8_t* codes;
  const std::int16_t* integer_scales;
  const std::int32_t* zero_terms;
  const float* scaled_sums;
  const float* units;
  std::int64_t code_stride;
  std::int64_t group_stride;
  std::int64_t unit_stride;
};

HR_INLINE TileRows rows_from(const RowsView& all, std::ptrdiff_t row) {
  return {.codes = all.codes + row * all.code_stride,
          .integer_scales = all.integer_scales + row * all.group_stride,
          .zero_terms = all.zero_terms + row * all.group_stride,
          .scaled_sums = all.scaled_sums + row * all.group_stride,
          .units = all.units + row * all.unit_stride,
          .code_stride = all.code_stride,
          .group_stride = all.group_stride,
          .unit_stride = all.unit_stride};
}

template <int kRows>
struct Sums {
  __m512i v[kRows][2][2];
};
template <int kRows>
struct Blocks {
  __m512i v[kRows][2];
};
template <int kRows>
struct Floats {
  __m512 v[kRows][2];
};

template <std::ptrdiff_t kHigh, int kRows, typename Pair>
HR_INLINE void dot_step(const Pair& pair,
                        std::ptrdiff_t step,
                        const std::int8_t* codes,
                        std::int64_t stride,
                        Sums<kRows>& sums) {
  const __m512i w00 = pair.template codes<kHigh>(step, 0, 0);
  const __m512i w01 = pair.template codes<kHigh>(step, 0, 1);
  const __m512i w10 = pair.template codes<kHigh>(step, 1, 0);
  const __m512i w11 = pair.template codes<kHigh>(step, 1, 1);
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    const std::int8_t* at = codes + m * stride + (step + 4 * kHigh) * 8;
    const __m512i eight = _mm512_set1_epi64(load_scalar<std::int64_t>(at));
    sums.v[m][0][0] = dot4(sums.v[m][0][0], w00, eight);
    sums.v[m][0][1] = dot4(sums.v[m][0][1], w01, eight);
    sums.v[m][1][0] = dot4(sums.v[m][1][0], w10, eight);
    sums.v[m][1][1] = dot4(sums.v[m][1][1], w11, eight);
  }
}

template <int kRows, typename Pair>
HR_INLINE void add_pair(const Pair& pair,
                        const TileRows& rows,
                        std::ptrdiff_t pair_idx,
                        Blocks<kRows>& blocks) {
  Sums<kRows> sums;
  const std::int8_t* codes = rows.codes + pair_idx * kPair;
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    const std::int32_t* terms = rows.zero_terms + m * rows.group_stride + 2 * pair_idx;
    const __m512i first = _mm512_set1_epi64(load_scalar<std::int64_t>(terms));
    sums.v[m][0][0] = first;
    sums.v[m][0][1] = first;
    sums.v[m][1][0] = first;
    sums.v[m][1][1] = first;
    // The rows of the next tile.
    const std::int8_t* next = codes + (kRows + m) * rows.code_stride;
    _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
  }
#pragma GCC unroll 4
  for (std::ptrdiff_t step = 0; step < 4; ++step) {
    dot_step<0, kRows>(pair, step, codes, rows.code_stride, sums);
    dot_step<1, kRows>(pair, step, codes, rows.code_stride, sums);
  }
#pragma GCC unroll 2
  for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
    const __m512i scales = pair.scales(vec);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const std::int16_t* own = rows.integer_scales + m * rows.group_stride + 2 * pair_idx;
      const __m512i both = _mm512_set1_epi32(load_scalar<std::int32_t>(own));
      const __m512i dots = _mm512_packs_epi32(sums.v[m][vec][0], sums.v[m][vec][1]);
      blocks.v[m][vec] = dot2(blocks.v[m][vec], dots, _mm512_mulhrs_epi16(scales, both));
    }
  }
}

template <int kRows, typename Pair>
HR_INLINE void add_pair_offsets(const Pair& pair,
                                const TileRows& rows,
                                std::ptrdiff_t pair_idx,
                                Floats<kRows>& offsets) {
#pragma GCC unroll 2
  for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
    const __m512 low = pair.template offset<0>(vec);
    const __m512 high = pair.template offset<1>(vec);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const float* own = rows.scaled_sums + m * rows.group_stride + 2 * pair_idx;
      offsets.v[m][vec] = _mm512_fmadd_ps(low, _mm512_set1_ps(own[0]), offsets.v[m][vec]);
      offsets.v[m][vec] = _mm512_fmadd_ps(high, _mm512_set1_ps(own[1]), offsets.v[m][vec]);
    }
  }
}

template <int kRows>
HR_INLINE void clear(Floats<kRows>& floats) {
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    floats.v[m][0] = _mm512_setzero_ps();
    floats.v[m][1] = _mm512_setzero_ps();
  }
}

// acc + offsets to memory.
template <int kRows>
HR_INLINE void store_sum(const Floats<kRows>& acc, const Floats<kRows>& offsets, float* out) {
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    _mm512_storeu_ps(out + m * kPanelCols, _mm512_add_ps(acc.v[m][0], offsets.v[m][0]));
    _mm512_storeu_ps(out + m * kPanelCols + 16, _mm512_add_ps(acc.v[m][1], offsets.v[m][1]));
  }
}

template <int kRows>
HR_INLINE void load_rows(const float* from, Floats<kRows>& acc) {
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    acc.v[m][0] = _mm512_loadu_ps(from + m * kPanelCols);
    acc.v[m][1] = _mm512_loadu_ps(from + m * kPanelCols + 16);
  }
}

template <int kRows>
HR_INLINE void store_rows(const Floats<kRows>& acc, float* out) {
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    _mm512_storeu_ps(out + m * kPanelCols, acc.v[m][0]);
    _mm512_storeu_ps(out + m * kPanelCols + 16, acc.v[m][1]);
  }
}

template <int kRows, bool kOffsets, typename Panel>
HR_INLINE void tile(const PanelJob& job, std::ptrdiff_t row_begin, const Panel& panel) {
  const TileRows rows = rows_from(job.rows, row_begin);
  float* out = job.acc + row_begin * kPanelCols;
  Floats<kRows> acc;
  Floats<kRows> offsets;
  clear(offsets);
  if (job.fresh) {
    clear(acc);
  } else {
    load_rows(out, acc);
  }
  const std::ptrdiff_t end = (job.k_end + kPair - 1) / kPair;
  for (std::ptrdiff_t p = job.k_begin / kPair; p < end;) {
    const std::ptrdiff_t block_end = p / kPairsPerBlock * kPairsPerBlock + kPairsPerBlock;
    const std::ptrdiff_t stop = block_end < end ? block_end : end;
    Blocks<kRows> blocks;
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      blocks.v[m][0] = _mm512_setzero_si512();
      blocks.v[m][1] = _mm512_setzero_si512();
    }
    for (; p < stop; ++p) {
      const auto pair = panel.pair(p);
      pair.prefetch();
      add_pair<kRows>(pair, rows, p, blocks);
      if constexpr (kOffsets) {
        add_pair_offsets<kRows>(pair, rows, p, offsets);
      }
    }
    const std::ptrdiff_t block_idx = (stop - 1) / kPairsPerBlock;
#pragma GCC unroll 2
    for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
      const __m512 unit = panel.unit(stop - 1, vec);
#pragma GCC unroll 8
      for (std::ptrdiff_t m = 0; m < kRows; ++m) {
        const __m512 both =
            _mm512_mul_ps(unit, _mm512_set1_ps(rows.units[m * rows.unit_stride + block_idx]));
        acc.v[m][vec] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(blocks.v[m][vec]), both, acc.v[m][vec]);
      }
    }
  }
  if constexpr (kOffsets) {
    store_sum(acc, offsets, out);
  } else {
    store_rows(acc, out);
  }
}

template <bool kOffsets, typename Panel>
HR_INLINE void all_rows(const PanelJob& job, const Panel& panel) {
  int row = 0;
  for (; row + kTileRows <= job.rows.num_rows; row += kTileRows) {
    tile<kTileRows, kOffsets>(job, row, panel);
  }
  switch (job.rows.num_rows - row) {
    case 3:
      return tile<3, kOffsets>(job, row, panel);
    case 2:
      return tile<2, kOffsets>(job, row, panel);
    case 1:
      return tile<1, kOffsets>(job, row, panel);
    default:
      return;
  }
}

template <DType kType>
void dot(const PanelJob& job) {
  all_rows<paired_layout(kType).has_offsets>(job, PackedPanel<kType>{job.panel});
}

template <DType kType>
void unpack(const PanelJob& job, const UnpackedPairs& out) {
  const PackedPanel<kType> panel{job.panel};
  std::uint8_t* codes = out.codes;
  std::int16_t* scales = out.scales;
  float* units = out.units;
  float* offsets = out.offsets;
  const std::ptrdiff_t begin = job.k_begin / kPair;
  const std::ptrdiff_t end = (job.k_end + kPair - 1) / kPair;
  for (std::ptrdiff_t p = begin; p < end; ++p) {
    const PackedPair<kType> pair = panel.pair(p);
    pair.prefetch();
#pragma GCC unroll 2
    for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
#pragma GCC unroll 4
      for (std::ptrdiff_t step = 0; step < 4; ++step) {
        for (std::ptrdiff_t half = 0; half < 2; ++half) {
          std::uint8_t* row = codes + step * kPairedRowBytes + vec * 128 + half * 64;
          _mm512_storeu_si512(row, pair.template codes<0>(step, vec, half));
          _mm512_storeu_si512(row + 4 * kPairedRowBytes, pair.template codes<1>(step, vec, half));
        }
      }
      _mm512_storeu_si512(scales + vec * 32, pair.scales(vec));
      if constexpr (paired_layout(kType).has_offsets) {
        _mm512_storeu_ps(offsets + vec * 16, pair.template offset<0>(vec));
        _mm512_storeu_ps(offsets + kPanelCols + vec * 16, pair.template offset<1>(vec));
      }
    }
    if (p == begin || p % kPairsPerBlock == 0) {
      _mm512_storeu_ps(units, pair.unit(0));
      _mm512_storeu_ps(units + 16, pair.unit(1));
      units += kPanelCols;
    }
    codes += kUnpackedPairBytes;
    scales += 2 * kPanelCols;
    offsets += 2 * kPanelCols;
  }
}

// One register for both vectors, so that a term is loaded once.
HR_INLINE __m512 broadcast(const float* p) {
  __m512 all;
  asm("vbroadcastss %1, %0" : "=v"(all) : "m"(*p));
  return all;
}

template <int kRows>
HR_INLINE void offsets_tile(const PanelJob& job, std::ptrdiff_t row_begin, const float* offsets) {
  const RowsView& rows = job.rows;
  const float* sums = rows.scaled_sums + row_begin * rows.group_stride;
  float* out = job.acc + row_begin * kPanelCols;
  Floats<kRows> acc;
  clear(acc);
  const std::ptrdiff_t end = (job.k_end + kGroup - 1) / kGroup;
  for (std::ptrdiff_t g = job.k_begin / kGroup; g < end; ++g, offsets += kPanelCols) {
    const __m512 low = _mm512_loadu_ps(offsets);
    const __m512 high = _mm512_loadu_ps(offsets + 16);
#pragma GCC unroll 16
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const __m512 sum = broadcast(sums + m * rows.group_stride + g);
      acc.v[m][0] = _mm512_fmadd_ps(low, sum, acc.v[m][0]);
      acc.v[m][1] = _mm512_fmadd_ps(high, sum, acc.v[m][1]);
    }
  }
#pragma GCC unroll 16
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    float* row = out + m * kPanelCols;
    _mm512_storeu_ps(row, _mm512_add_ps(_mm512_loadu_ps(row), acc.v[m][0]));
    _mm512_storeu_ps(row + 16, _mm512_add_ps(_mm512_loadu_ps(row + 16), acc.v[m][1]));
  }
}

}  // namespace

void dot_paired(const PanelJob& job) {
  switch (job.dtype) {
    case DType::kQ4_0:
      return dot<DType::kQ4_0>(job);
    case DType::kQ4_1:
      return dot<DType::kQ4_1>(job);
    default:
      return dot<DType::kQ4_K>(job);
  }
}

void unpack_paired(const PanelJob& job, const UnpackedPairs& out) {
  switch (job.dtype) {
    case DType::kQ4_0:
      return unpack<DType::kQ4_0>(job, out);
    case DType::kQ4_1:
      return unpack<DType::kQ4_1>(job, out);
    default:
      return unpack<DType::kQ4_K>(job, out);
  }
}

void dot_unpacked_paired(const PanelJob& job, const UnpackedPairs& panel) {
  all_rows<false>(job, ChunkPanel{&panel, job.k_begin / kPair});
}

void add_offsets(const PanelJob& job, const float* offsets) {
  int row = 0;
  for (; row + 12 <= job.rows.num_rows; row += 12) {
    offsets_tile<12>(job, row, offsets);
  }
  for (; row + 4 <= job.rows.num_rows; row += 4) {
    offsets_tile<4>(job, row, offsets);
  }
  for (; row < job.rows.num_rows; ++row) {
    offsets_tile<1>(job, row, offsets);
  }
}

}  // namespace headrace::avx512vnni
