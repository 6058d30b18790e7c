// 8-bit products: vpmaddubsw, 32 multiply-adds, and one addition in 16 bits, the least that a sum
// of them costs; what widens them comes on top in a kernel. Floats: vfmadd231ps, 8. Written in
// assembly, so that the sums stay in registers.
#include <immintrin.h>

#include "kernels/cpu/probe_kernels.h"

namespace headrace::avx2 {
namespace {

#define HR_REGISTERS                                                                       \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc"
#define HR_ZERO(n) "vpxor %%ymm" #n ", %%ymm" #n ", %%ymm" #n "\n"
#define HR_SUM_BYTES(sum, product)              \
  "vpmaddubsw %%ymm14, %%ymm15, %%ymm" #product \
  "\n"                                          \
  "vpaddw %%ymm" #product ", %%ymm" #sum ", %%ymm" #sum "\n"
#define HR_FMA(n) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #n "\n"
// clang-format off
#define HR_ZERO_ALL                                                                                 \
  HR_ZERO(0) HR_ZERO(1) HR_ZERO(2) HR_ZERO(3) HR_ZERO(4) HR_ZERO(5) HR_ZERO(6) HR_ZERO(7) HR_ZERO(8) \
  HR_ZERO(9) HR_ZERO(10) HR_ZERO(11) HR_ZERO(14) HR_ZERO(15)
// clang-format on

std::int64_t int8(std::int64_t rounds) {
  constexpr std::int64_t kSums = 6;
  std::int64_t left = rounds;
  __asm__ volatile(HR_ZERO_ALL "1:\n"                                          //
                   HR_SUM_BYTES(0, 6) HR_SUM_BYTES(1, 7) HR_SUM_BYTES(2, 8)    //
                   HR_SUM_BYTES(3, 9) HR_SUM_BYTES(4, 10) HR_SUM_BYTES(5, 11)  //
                   "dec %0\n"
                   "jnz 1b\n"
                   : "+r"(left)
                   :
                   : HR_REGISTERS);
  return rounds * kSums * 32 * 2;
}

std::int64_t f32(std::int64_t rounds) {
  constexpr std::int64_t kSums = 12;
  std::int64_t left = rounds;
  __asm__ volatile(HR_ZERO_ALL "1:\n"                                             //
                   HR_FMA(0) HR_FMA(1) HR_FMA(2) HR_FMA(3) HR_FMA(4) HR_FMA(5)    //
                   HR_FMA(6) HR_FMA(7) HR_FMA(8) HR_FMA(9) HR_FMA(10) HR_FMA(11)  //
                   "dec %0\n"
                   "jnz 1b\n"
                   : "+r"(left)
                   :
                   : HR_REGISTERS);
  return rounds * kSums * 8 * 2;
}

std::uint64_t read(const std::byte* data, std::size_t bytes, std::size_t ahead) {
  __m256i sums[8] = {};
  for (const std::byte* const end = data + bytes; data < end; data += 256) {
#pragma GCC unroll 8
    for (std::ptrdiff_t i = 0; i < 8; ++i) {
      if (i % 2 == 0) {
        _mm_prefetch(reinterpret_cast<const char*>(data) + ahead + i * 32, _MM_HINT_T0);
      }
      const auto* const from = reinterpret_cast<const __m256i*>(data) + i;
      sums[i] = _mm256_xor_si256(sums[i], _mm256_loadu_si256(from));
    }
  }
  for (int i = 1; i < 8; ++i) {
    sums[0] = _mm256_xor_si256(sums[0], sums[i]);
  }
  return static_cast<std::uint64_t>(
      _mm256_extract_epi64(sums[0], 0) ^ _mm256_extract_epi64(sums[0], 1) ^
      _mm256_extract_epi64(sums[0], 2) ^ _mm256_extract_epi64(sums[0], 3));
}

constexpr ProbeKernels kKernels = {.int8 = int8, .f32 = f32, .read = read};

}  // namespace

const ProbeKernels& probe_kernels() { return kKernels; }

}  // namespace headrace::avx2
