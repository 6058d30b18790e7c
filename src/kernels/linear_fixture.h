// Matrices, inputs and layers for the tests and the benchmark of linear layers. Seeded, so that
// every run is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/linear.h"
#include "tensor/view.h"

namespace headrace {

// A matrix as a file would hold it: random codes and scales of a trained model's size.
struct StoredMatrix {
  std::vector<std::byte> bytes;
  TensorView view;  // of bytes

  StoredMatrix(DType dtype, int num_rows, int num_cols, std::uint32_t seed);
  StoredMatrix(const StoredMatrix&) = delete;
  StoredMatrix& operator=(const StoredMatrix&) = delete;
};

std::vector<float> random_floats(std::size_t count, std::uint32_t seed);

// The tiers that this machine can run, scalar first.
std::vector<const LinearKernels*> runnable_linear_kernels();

inline constexpr DType kAllDTypes[] = {DType::kF32,
                                       DType::kF16,
                                       DType::kBF16,
                                       DType::kQ4_0,
                                       DType::kQ4_1,
                                       DType::kQ5_0,
                                       DType::kQ5_1,
                                       DType::kQ8_0,
                                       DType::kQ4_K,
                                       DType::kQ5_K,
                                       DType::kQ6_K};

// A driver with its own pool and counters.
struct LinearBench {
  explicit LinearBench(const LinearKernels& kernels, int num_threads = 1);
  std::unique_ptr<Weight> pack(const StoredMatrix& matrix,
                               KSplit k_split = KSplit::kWhole,
                               ScaleForm form = ScaleForm::kFile);
  std::vector<float> linear(const Weight& weight, const std::vector<float>& x);

  ThreadPool pool;
  MemoryCounters counters;
  LinearDriver driver;
};

}  // namespace headrace
