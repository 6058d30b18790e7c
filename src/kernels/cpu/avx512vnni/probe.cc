// vpdpbusd: 64 multiply-adds an instruction; vfmadd231ps: 16. Written in assembly, so that 24 sums
// stay in registers: more than the latency of either asks for, at two a cycle.
#include <immintrin.h>

#include "kernels/cpu/probe_kernels.h"

namespace headrace::avx512vnni {
namespace {

// clang-format off
#define HR_EIGHT(op, a, b, c, d, e, f, g, h)                                                          \
  op " %%zmm30, %%zmm31, %%zmm" #a "\n" op " %%zmm30, %%zmm31, %%zmm" #b "\n"                         \
  op " %%zmm30, %%zmm31, %%zmm" #c "\n" op " %%zmm30, %%zmm31, %%zmm" #d "\n"                         \
  op " %%zmm30, %%zmm31, %%zmm" #e "\n" op " %%zmm30, %%zmm31, %%zmm" #f "\n"                         \
  op " %%zmm30, %%zmm31, %%zmm" #g "\n" op " %%zmm30, %%zmm31, %%zmm" #h "\n"
#define HR_ROUND(op)                                                                                  \
  HR_EIGHT(op, 0, 1, 2, 3, 4, 5, 6, 7) HR_EIGHT(op, 8, 9, 10, 11, 12, 13, 14, 15)                     \
  HR_EIGHT(op, 16, 17, 18, 19, 20, 21, 22, 23)
#define HR_REGISTERS                                                                                  \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",   \
  "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",  \
  "xmm23", "xmm30", "xmm31"
// clang-format on

constexpr std::int64_t kSums = 24;

// Zeros, so that no sum becomes a number that is slow to add.
#define HR_LOOP(op) \
  __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n"                             \
                   "vpxord %%zmm31, %%zmm31, %%zmm31\n"                             \
                   HR_ROUND("vpxord") "1:\n" HR_ROUND(op) "dec %0\n"                \
                   "jnz 1b\n"                                                       \
                   : "+r"(left)                                                     \
                   :                                                                \
                   : HR_REGISTERS, "cc")

std::int64_t int8(std::int64_t rounds) {
  std::int64_t left = rounds;
  HR_LOOP("vpdpbusd");
  return rounds * kSums * 64 * 2;
}

std::int64_t f32(std::int64_t rounds) {
  std::int64_t left = rounds;
  HR_LOOP("vfmadd231ps");
  return rounds * kSums * 16 * 2;
}

std::uint64_t read(const std::byte* data, std::size_t bytes, std::size_t ahead) {
  __m512i sums[8] = {};
  for (const std::byte* const end = data + bytes; data < end; data += 512) {
#pragma GCC unroll 8
    for (std::ptrdiff_t i = 0; i < 8; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(data) + ahead + i * 64, _MM_HINT_T0);
      sums[i] = _mm512_xor_si512(sums[i], _mm512_loadu_si512(data + i * 64));
    }
  }
  for (int i = 1; i < 8; ++i) {
    sums[0] = _mm512_xor_si512(sums[0], sums[i]);
  }
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums[0]));
}

constexpr ProbeKernels kKernels = {.int8 = int8, .f32 = f32, .read = read};

}  // namespace

const ProbeKernels& probe_kernels() { return kKernels; }

}  // namespace headrace::avx512vnni
