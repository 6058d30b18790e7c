// Panels with paired scales: 4 rows x 32 columns. A step of a pair is 8 bytes of codes in one
// broadcast by the load port and four vectors of weights, 8 columns x 2 groups each. A pair ends
// with one pack to 16 bits, one rounded product of the integer scales and one 16-bit dot product
// for each 16 vpdpbusd, and one more for offsets; a block of 256 with convert, product of units and
// fused multiply-add: 64 dot products of 79 instructions of the two ports, or of 83. Few rows read
// the panel as packed (bound by memory, with prefetch); many read it unpacked, chunk by chunk in
// the first-level cache.
#include <immintrin.h>

#include "kernels/cpu/avx512vnni/linear_internal.h"

namespace headrace::avx512vnni {
namespace {

#define HR_INLINE inline __attribute__((always_inline))

constexpr int kPrefetch = 4096;
constexpr std::ptrdiff_t kUnpackedPairBytes = 8 * kPairedRowBytes;
constexpr std::ptrdiff_t kPairNumbers =
    std::ptrdiff_t{2} * kPanelCols;  // a scale for each group and column

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

HR_INLINE void prefetch_ahead(const std::uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p + kPrefetch), _MM_HINT_T0);
}

// Integers of a pair, 16 columns x 2 groups of 16 bits.
struct Numbers {
  __m512i scales;
  __m512i offsets;  // of a type that has them
};

// A pair of a packed panel of one type.
template <DType kType>
class PackedPair {
 public:
  static constexpr PairedLayout kLayout = paired_layout(kType);
  static constexpr bool kUnpacked = false;

  HR_INLINE PackedPair(const std::byte* panel, std::ptrdiff_t pair_idx) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(panel);
    header_ = bytes + kLayout.header_at(pair_idx);
    pair_ = bytes + kLayout.pair_at(pair_idx);
  }

  HR_INLINE void prefetch_header() const {
    for (std::ptrdiff_t i = 0; i < kLayout.header_bytes; i += 64) {
      prefetch_ahead(header_ + i);
    }
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

  HR_INLINE Numbers numbers(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_byte_scales) {
      const __m512i exponents = exponent(vec);
      const __m512i opposite = _mm512_sub_epi32(_mm512_set1_epi32(254), exponents);
      const __m512 inverse = _mm512_castsi512_ps(_mm512_slli_epi32(opposite, 23));
      const __m512 d = _mm512_mul_ps(load_halves(header_ + vec * 32), inverse);
      const __m512 dmin = _mm512_mul_ps(load_halves(header_ + kHalvesBytes + vec * 32),
                                        _mm512_mul_ps(inverse, _mm512_set1_ps(0.125F)));
      const Bytes scales(pair_ + vec * 32);
      const Bytes mins(pair_ + kLayout.offsets_at + vec * 32);
      const __m512 low = _mm512_mul_ps(d, scales.first());
      const __m512 high = _mm512_mul_ps(d, scales.second());
      return {round_pairs(low, high),
              round_pairs(_mm512_fnmadd_ps(dmin, mins.first(), low),
                          _mm512_fnmadd_ps(dmin, mins.second(), high))};
    } else {
      const __m512i scales = _mm512_loadu_si512(pair_ + vec * 64);
      return {
          scales,
          kLayout.has_offsets ? _mm512_loadu_si512(pair_ + kLayout.offsets_at + vec * 64) : scales};
    }
  }

  HR_INLINE __m512 unit(std::ptrdiff_t vec) const {
    if constexpr (kLayout.has_byte_scales) {
      return _mm512_castsi512_ps(_mm512_slli_epi32(exponent(vec), 23));
    } else {
      return _mm512_loadu_ps(header_ + vec * 64);
    }
  }

 private:
  // Two groups' bytes of 16 columns, in turn.
  class Bytes {
   public:
    HR_INLINE explicit Bytes(const std::uint8_t* p)
        : both_(_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))) {}
    HR_INLINE __m512 first() const {
      return _mm512_cvtepi32_ps(_mm512_and_si512(both_, _mm512_set1_epi32(0xFFFF)));
    }
    HR_INLINE __m512 second() const { return _mm512_cvtepi32_ps(_mm512_srli_epi32(both_, 16)); }

   private:
    __m512i both_;
  };

  HR_INLINE static __m512i round_pairs(__m512 first, __m512 second) {
    const __m512i upper = _mm512_slli_epi32(_mm512_cvtps_epi32(second), 16);
    return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_cvtps_epi32(first), upper);
  }

  HR_INLINE __m512i exponent(std::ptrdiff_t vec) const {
    const std::uint8_t* bytes = header_ + 2 * kHalvesBytes + vec * 16;
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
  }

  const std::uint8_t* header_;
  const std::uint8_t* pair_;
};

// A pair of an unpacked panel; pair_idx counts from the panel's first.
class UnpackedPair {
 public:
  static constexpr bool kUnpacked = true;

  HR_INLINE UnpackedPair(const UnpackedPairs& panel, std::ptrdiff_t pair_idx)
      : codes_(panel.codes + pair_idx * kUnpackedPairBytes),
        scales_(panel.scales + pair_idx * 2 * kPanelCols),
        offsets_(panel.offsets + pair_idx * 2 * kPanelCols) {}

  HR_INLINE void prefetch_header() const {}
  HR_INLINE void prefetch() const {}

  template <std::ptrdiff_t kHigh>
  HR_INLINE __m512i codes(std::ptrdiff_t step, std::ptrdiff_t vec, std::ptrdiff_t half) const {
    return _mm512_loadu_si512(codes_ + (step + 4 * kHigh) * kPairedRowBytes + vec * 128 +
                              half * 64);
  }
  HR_INLINE Numbers numbers(std::ptrdiff_t vec) const {
    return {_mm512_loadu_si512(scales_ + vec * 32), _mm512_loadu_si512(offsets_ + vec * 32)};
  }

 private:
  const std::uint8_t* codes_;
  const std::int16_t* scales_;
  const std::int16_t* offsets_;
};

// What the tile reads its pairs and units from.
template <DType kType>
struct PackedPanel {
  static constexpr bool kUnpacked = false;
  const std::byte* panel;
  HR_INLINE PackedPair<kType> pair(std::ptrdiff_t idx) const { return {panel, idx}; }
  HR_INLINE __m512 unit(std::ptrdiff_t pair_idx, std::ptrdiff_t vec) const {
    return pair(pair_idx).unit(vec);
  }
};

struct ChunkPanel {
  static constexpr bool kUnpacked = true;
  const UnpackedPairs* panel;
  std::ptrdiff_t first_pair;
  HR_INLINE UnpackedPair pair(std::ptrdiff_t idx) const { return {*panel, idx - first_pair}; }
  HR_INLINE __m512 unit(std::ptrdiff_t pair_idx, std::ptrdiff_t vec) const {
    const std::ptrdiff_t block = pair_idx / kPairsPerBlock - first_pair / kPairsPerBlock;
    return _mm512_loadu_ps(panel->units + block * kPanelCols + vec * 16);
  }
};

// A tile of rows; the order inside is PairedRow's.
struct TileRows {
  const std::int8_t* codes;
  const std::int16_t* integer_scales;
  const std::int32_t* zero_terms;
  const std::int16_t* integer_sums;
  const float* units;
  std::int64_t code_stride;  // to the next tile's
};

HR_INLINE TileRows tile_of(const RowsView& all, std::ptrdiff_t row) {
  const std::ptrdiff_t tile = row / kTileRows;
  return {.codes = all.codes + tile * all.code_stride,
          .integer_scales = all.integer_scales + tile * all.group_stride,
          .zero_terms = all.zero_terms + tile * all.group_stride,
          .integer_sums = all.integer_sums + tile * all.group_stride,
          .units = all.units + tile * all.unit_stride,
          .code_stride = all.code_stride};
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
                        Sums<kRows>& sums) {
  const __m512i w00 = pair.template codes<kHigh>(step, 0, 0);
  const __m512i w01 = pair.template codes<kHigh>(step, 0, 1);
  const __m512i w10 = pair.template codes<kHigh>(step, 1, 0);
  const __m512i w11 = pair.template codes<kHigh>(step, 1, 1);
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    const std::int8_t* at = codes + m * kPair + (step + 4 * kHigh) * 8;
    const __m512i eight = _mm512_set1_epi64(load_scalar<std::int64_t>(at));
    sums.v[m][0][0] = dot4(sums.v[m][0][0], w00, eight);
    sums.v[m][0][1] = dot4(sums.v[m][0][1], w01, eight);
    sums.v[m][1][0] = dot4(sums.v[m][1][0], w10, eight);
    sums.v[m][1][1] = dot4(sums.v[m][1][1], w11, eight);
  }
}

template <bool kOffsets, int kRows, typename Pair>
HR_INLINE void add_pair(const Pair& pair,
                        const TileRows& rows,
                        std::ptrdiff_t pair_idx,
                        Blocks<kRows>& blocks) {
  Sums<kRows> sums;
  const std::ptrdiff_t first_number = pair_idx * 2 * kTileRows;
  const std::int8_t* codes = rows.codes + pair_idx * kPair * kTileRows;
#pragma GCC unroll 8
  for (std::ptrdiff_t m = 0; m < kRows; ++m) {
    const std::int32_t* terms = rows.zero_terms + first_number + 2 * m;
    const __m512i first = _mm512_set1_epi64(load_scalar<std::int64_t>(terms));
    sums.v[m][0][0] = first;
    sums.v[m][0][1] = first;
    sums.v[m][1][0] = first;
    sums.v[m][1][1] = first;
    if constexpr (Pair::kUnpacked) {  // the rows of the next tile
      const std::int8_t* next = codes + rows.code_stride + m * kPair;
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
    }
  }
#pragma GCC unroll 4
  for (std::ptrdiff_t step = 0; step < 4; ++step) {
    dot_step<0, kRows>(pair, step, codes, sums);
    dot_step<1, kRows>(pair, step, codes, sums);
  }
#pragma GCC unroll 2
  for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
    const Numbers numbers = pair.numbers(vec);
#pragma GCC unroll 8
    for (std::ptrdiff_t m = 0; m < kRows; ++m) {
      const std::ptrdiff_t own = first_number + 2 * m;
      const __m512i scales = _mm512_mulhrs_epi16(
          numbers.scales, _mm512_set1_epi32(load_scalar<std::int32_t>(rows.integer_scales + own)));
      const __m512i dots = _mm512_packs_epi32(sums.v[m][vec][0], sums.v[m][vec][1]);
      blocks.v[m][vec] = dot2(blocks.v[m][vec], dots, scales);
      if constexpr (kOffsets) {
        const __m512i both = _mm512_set1_epi32(load_scalar<std::int32_t>(rows.integer_sums + own));
        blocks.v[m][vec] = dot2(blocks.v[m][vec], numbers.offsets, both);
      }
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

HR_INLINE void fetch_ahead(const std::byte* ahead, int num_lines) {
  for (int i = 0; i < num_lines; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + std::ptrdiff_t{64} * i), _MM_HINT_T1);
  }
}

template <int kRows, bool kOffsets, typename Panel>
HR_INLINE void tile(const PanelJob& job, std::ptrdiff_t row_begin, const Panel& panel) {
  const std::ptrdiff_t pair_bytes = paired_layout(job.dtype).pair_bytes;
  const std::byte* ahead =
      job.ahead + std::ptrdiff_t{64} * job.ahead_lines * (row_begin / kTileRows);
  const TileRows rows = tile_of(job.rows, row_begin);
  float* out = job.acc + row_begin * kPanelCols;
  Floats<kRows> acc;
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
    panel.pair(p).prefetch_header();
    for (; p < stop; ++p) {
      const auto pair = panel.pair(p);
      pair.prefetch();
      if constexpr (Panel::kUnpacked) {
        fetch_ahead(ahead, job.ahead_lines);
        ahead += pair_bytes;
      }
      add_pair<kOffsets, kRows>(pair, rows, p, blocks);
    }
    const std::ptrdiff_t block_idx = (stop - 1) / kPairsPerBlock;
#pragma GCC unroll 2
    for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
      const __m512 unit = panel.unit(stop - 1, vec);
#pragma GCC unroll 8
      for (std::ptrdiff_t m = 0; m < kRows; ++m) {
        const __m512 both =
            _mm512_mul_ps(unit, _mm512_set1_ps(rows.units[block_idx * kTileRows + m]));
        acc.v[m][vec] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(blocks.v[m][vec]), both, acc.v[m][vec]);
      }
    }
  }
  store_rows(acc, out);
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

// The codes of a pair, one byte each.
template <DType kType>
HR_INLINE void unpack_codes(const PackedPair<kType>& pair,
                            std::ptrdiff_t vec,
                            std::uint8_t* codes) {
#pragma GCC unroll 4
  for (std::ptrdiff_t step = 0; step < 4; ++step) {
    for (std::ptrdiff_t half = 0; half < 2; ++half) {
      std::uint8_t* row = codes + step * kPairedRowBytes + vec * 128 + half * 64;
      _mm512_storeu_si512(row, pair.template codes<0>(step, vec, half));
      _mm512_storeu_si512(row + 4 * kPairedRowBytes, pair.template codes<1>(step, vec, half));
    }
  }
}

template <DType kType>
void unpack(const PanelJob& job, const UnpackedPairs& out) {
  const PackedPanel<kType> panel{job.panel};
  std::uint8_t* codes = out.codes;
  std::int16_t* scales = out.scales;
  float* units = out.units;
  std::int16_t* offsets = out.offsets;
  const std::ptrdiff_t begin = job.k_begin / kPair;
  const std::ptrdiff_t end = (job.k_end + kPair - 1) / kPair;
  for (std::ptrdiff_t p = begin; p < end; ++p) {
    const PackedPair<kType> pair = panel.pair(p);
    pair.prefetch();
#pragma GCC unroll 2
    for (std::ptrdiff_t vec = 0; vec < 2; ++vec) {
      unpack_codes<kType>(pair, vec, codes);
      const Numbers numbers = pair.numbers(vec);
      _mm512_storeu_si512(scales + vec * 32, numbers.scales);
      _mm512_storeu_si512(offsets + vec * 32, numbers.offsets);
    }
    if (p == begin || p % kPairsPerBlock == 0) {
      pair.prefetch_header();
      _mm512_storeu_ps(units, pair.unit(0));
      _mm512_storeu_ps(units + 16, pair.unit(1));
      units += kPanelCols;
    }
    codes += kUnpackedPairBytes;
    scales += kPairNumbers;
    offsets += kPairNumbers;
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
  const ChunkPanel chunk{&panel, job.k_begin / kPair};
  if (paired_layout(job.dtype).has_offsets) {
    all_rows<true>(job, chunk);
  } else {
    all_rows<false>(job, chunk);
  }
}

}  // namespace headrace::avx512vnni
