// What the compiler makes of plain loops over the first-level cache: the portable code's own limit.
#include <array>
#include <cstring>

#include "kernels/cpu/probe_kernels.h"

namespace headrace::scalar {
namespace {

constexpr std::size_t kValues = 64;

std::int64_t int8(std::int64_t rounds) {
  std::array<std::int8_t, kValues> a{};
  std::array<std::int8_t, kValues> b{};
  std::int32_t sum = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    __asm__ volatile("" : : "r"(a.data()), "r"(b.data()) : "memory");  // read again each round
    std::int32_t products = 0;
    for (std::size_t i = 0; i < kValues; ++i) {
      products += std::int32_t{a[i]} * std::int32_t{b[i]};
    }
    sum += products;
  }
  __asm__ volatile("" : : "r"(sum));
  return rounds * static_cast<std::int64_t>(kValues) * 2;
}

std::int64_t f32(std::int64_t rounds) {
  std::array<float, kValues> sums{};
  const volatile float source = 0;
  const float x = source;
  const float y = source;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (float& sum : sums) {
      sum = sum * x + y;
    }
  }
  __asm__ volatile("" : : "r"(sums.data()) : "memory");
  return rounds * static_cast<std::int64_t>(kValues) * 2;
}

std::uint64_t read(const std::byte* data, std::size_t bytes, std::size_t /*ahead*/) {
  std::array<std::uint64_t, 8> sums{};
  for (const std::byte* const end = data + bytes; data < end; data += sizeof(sums)) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, data + i * sizeof(word), sizeof(word));
      sums[i] ^= word;
    }
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) {
    all ^= sum;
  }
  return all;
}

constexpr ProbeKernels kKernels = {.int8 = int8, .f32 = f32, .read = read};

}  // namespace

const ProbeKernels& probe_kernels() { return kKernels; }

}  // namespace headrace::scalar
