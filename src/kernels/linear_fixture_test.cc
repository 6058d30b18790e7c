#include "kernels/linear_fixture.h"

#include <cstring>

#include "base/check.h"
#include "kernels/cpu/tier.h"
#include "tensor/half.h"

namespace headrace {
namespace {

// xorshift, of 32 bits.
class Xorshift {
 public:
  explicit Xorshift(std::uint32_t seed) : state_(seed * 2654435761U + 12345U) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24F; }  // [0, 1)

 private:
  std::uint32_t state_;
};

// Where the halves of a block stand.
std::vector<int> half_offsets(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

void store_u16(std::byte* at, std::uint16_t value) { std::memcpy(at, &value, sizeof(value)); }

void fill_floats(DType dtype, std::vector<std::byte>& bytes, Xorshift& random) {
  const auto size = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    const float value = (random.uniform() - 0.5F) * 0.2F;
    if (dtype == DType::kF32) {
      std::memcpy(&bytes[i], &value, sizeof(value));
    } else if (dtype == DType::kF16) {
      store_u16(&bytes[i], f32_to_f16(value));
    } else {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      store_u16(&bytes[i], static_cast<std::uint16_t>(bits >> 16));
    }
  }
}

void fill_blocks(DType dtype, std::vector<std::byte>& bytes, Xorshift& random) {
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.next() >> 11);
  }
  const auto size = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
  for (std::size_t block = 0; block < bytes.size(); block += size) {
    for (const int offset : half_offsets(dtype)) {
      const float scale = (random.uniform() - 0.4F) * 0.01F;
      store_u16(&bytes[block + static_cast<std::size_t>(offset)], f32_to_f16(scale));
    }
  }
}

}  // namespace

StoredMatrix::StoredMatrix(DType dtype, int num_rows, int num_cols, std::uint32_t seed) {
  bytes.resize(static_cast<std::size_t>(num_rows * row_bytes(dtype, num_cols)));
  Xorshift random(seed);
  if (is_quantized(dtype)) {
    fill_blocks(dtype, bytes, random);
  } else {
    fill_floats(dtype, bytes, random);
  }
  view.name = "matrix";
  view.dtype = dtype;
  view.shape = {num_rows, num_cols};
  view.data = bytes;
}

std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
  Xorshift random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = (random.uniform() - 0.5F) * 4;
  }
  return values;
}

std::vector<const LinearKernels*> runnable_linear_kernels() {
  std::vector<const LinearKernels*> kernels;
  for (const CpuTier tier : available_tiers()) {
    switch (tier) {
      case CpuTier::kScalar:
        kernels.push_back(&scalar::linear_kernels());
        break;
      case CpuTier::kAvx2:
        kernels.push_back(&avx2::linear_kernels());
        break;
      case CpuTier::kAvx512Vnni:
        kernels.push_back(&avx512vnni::linear_kernels());
        break;
    }
  }
  return kernels;
}

LinearBench::LinearBench(const LinearKernels& kernels, int num_threads)
    : pool(num_threads), driver(pool, kernels, counters) {}

std::unique_ptr<Weight> LinearBench::pack(const StoredMatrix& matrix,
                                          KSplit k_split,
                                          ScaleForm form) {
  Result<std::unique_ptr<Weight>> weight =
      pack_weight(matrix.view, {.k_split = k_split}, pool, counters, form);
  HR_CHECK(weight.ok());
  return std::move(weight).value();
}

std::vector<float> LinearBench::linear(const Weight& weight, const std::vector<float>& x) {
  const int num_rows = static_cast<int>(x.size()) / weight.num_cols;
  std::vector<float> out(static_cast<std::size_t>(num_rows) *
                         static_cast<std::size_t>(weight.num_rows));
  const LinearOutput output = {.weight = &weight, .out = out.data()};
  driver.linear({.x = x.data(), .num_rows = num_rows}, {&output, 1});
  return out;
}

}  // namespace headrace
