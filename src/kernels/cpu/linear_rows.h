// The input rows of a linear layer in the forms its weights need: normalized, quantized, summed.
// Filled once a layer by the pool, then read by every worker. Memory grows to the largest layer
// seen and stays, counted as workspace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/memory.h"

namespace headrace {

// A buffer that grows. Content does not survive growth.
class GrowingBuffer {
 public:
  template <typename T>
  T* get(std::size_t count, MemoryCounters& counters) {
    reserve(count * sizeof(T), counters);
    return buffer_.as<T>();
  }

 private:
  void reserve(std::size_t bytes, MemoryCounters& counters);
  Buffer buffer_;
};

class LinearRows {
 public:
  LinearRows(ThreadPool& pool, const LinearKernels& kernels, MemoryCounters& counters)
      : pool_(pool), kernels_(kernels), counters_(counters) {}

  // Which weight types will read the rows.
  class Needs {
   public:
    void add(const CpuWeight& weight);

   private:
    friend class LinearRows;
    bool floats_ = false;
    bool paired_ = false;
    bool codes_ = false;
    int num_planes_ = 1;
    bool scaled_sums_ = false;
    std::array<bool, 4> zero_terms_{};  // by kind of zero term
  };

  void prepare(const LinearInput& input, int num_cols, const Needs& needs);

  // Rows [begin, begin + num_rows) as a weight of this type reads them; valid until the next
  // prepare(). With two planes row r stands at 2r, and what its codes leave of it at 2r + 1.
  RowsView view(const CpuWeight& weight, int begin, int num_rows) const;

 private:
  // Rows for weights with paired scales.
  struct PairedRows {
    GrowingBuffer codes, integer_scales, integer_sums, zero_terms, units;
    PairedRow first;  // row 0; the next tiles follow at the strides
    std::int64_t code_stride = 0;
    std::int64_t group_stride = 0;
    std::int64_t unit_stride = 0;
    PairedRow row(std::int64_t idx) const;
  };

  void reserve_paired(std::size_t num_rows);
  RowsView paired_view(std::int64_t begin, int num_rows) const;
  void prepare_row(const LinearInput& input, const Needs& needs, int row_idx) const;
  void quantize(const float* x, const Needs& needs, int code_row) const;
  float* leave_rest(const float* x, int row_idx) const;

  ThreadPool& pool_;
  const LinearKernels& kernels_;
  MemoryCounters& counters_;
  GrowingBuffer normalized_buffer_;
  GrowingBuffer rest_buffer_;
  GrowingBuffer codes_buffer_;
  GrowingBuffer scales_buffer_;
  GrowingBuffer sums_buffer_;
  GrowingBuffer scaled_sums_buffer_;
  std::array<GrowingBuffer, 4> zero_terms_buffer_;
  int num_cols_ = 0;
  const float* x_ = nullptr;  // the input, or its normalized form
  float* normalized_ = nullptr;
  float* rest_ = nullptr;  // what the first plane leaves of x
  std::int8_t* codes_ = nullptr;
  float* scales_ = nullptr;
  std::int32_t* sums_ = nullptr;  // of 16 codes
  float* scaled_sums_ = nullptr;
  std::array<std::int32_t*, 4> zero_terms_{};
  PairedRows paired_;
};

}  // namespace headrace
