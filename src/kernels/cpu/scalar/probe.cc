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

// Four floats: what the baseline of every 64-bit machine computes at once.
using Four = float __attribute__((vector_size(16)));

std::int64_t f32(std::int64_t rounds) {
  const volatile float zero = 0;  // read for each sum, so that they are not known to be equal
  const auto four = [&] {
    const float value = zero;
    return Four{value, value, value, value};
  };
  const Four x = four();
  Four a = four(), b = four(), c = four(), d = four(), e = four(), f = four();
  Four g = four(), h = four(), i = four(), j = four(), k = four(), l = four();
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = a * x + x;
    b = b * x + x;
    c = c * x + x;
    d = d * x + x;
    e = e * x + x;
    f = f * x + x;
    g = g * x + x;
    h = h * x + x;
    i = i * x + x;
    j = j * x + x;
    k = k * x + x;
    l = l * x + x;
  }
  const volatile Four sum = a + b + c + d + e + f + g + h + i + j + k + l;
  static_cast<void>(sum);
  constexpr std::int64_t kSums = 12;
  return rounds * kSums * 4 * 2;
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
