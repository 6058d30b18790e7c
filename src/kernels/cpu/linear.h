// Linear layers of the CPU backend: weights packed into panels, and the driver that quantizes the
// input, spreads panels over the pool and finishes the output (bias, residual, gate). The tier's
// arithmetic is in linear_kernels.h. One thread (the backend's caller) uses a driver; it runs the
// pool inside its calls. Shapes and meaning of the operations are backend.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/memory.h"

namespace headrace {

// 64-byte aligned, zeroed, on huge pages where large; counted under `part` until the buffer dies.
// The counters must outlive it.
Result<Buffer> allocate_counted(std::size_t bytes, MemoryPart part, MemoryCounters& counters);

// How a weight's scales are kept: as the file has them, or as integers in pairs (paired_layout.h),
// which is quicker where the dot products of 16-bit integers are and gives other bits.
enum class ScaleForm : std::uint8_t { kFile, kPaired };

// Whether a weight can be packed with paired scales: 4 bits, no row of it looked up, one plane.
bool can_pair_scales(DType dtype, const PackOptions& options);

class CpuWeight final : public Weight {
 public:
  DType dtype = DType::kF32;
  ScaleForm form = ScaleForm::kFile;
  KSplit k_split = KSplit::kWhole;
  int num_planes = 1;  // of its input's codes
  std::size_t panel_bytes = 0;
  Buffer data;

  int num_panels() const { return (num_rows + kPanelCols - 1) / kPanelCols; }
  const std::byte* panel(int idx) const {
    return data.as<const std::byte>() + static_cast<std::size_t>(idx) * panel_bytes;
  }
};

// Panels of `view` (a matrix), packed by the pool, in this form where it can have it. Fails on a
// shape that the type cannot have, and without memory.
Result<std::unique_ptr<Weight>> pack_weight(const TensorView& view,
                                            const PackOptions& options,
                                            ThreadPool& pool,
                                            MemoryCounters& counters,
                                            ScaleForm form = ScaleForm::kFile);
// What pack_weight() holds: CpuWeight::bytes.
std::size_t packed_weight_bytes(DType dtype,
                                int num_rows,
                                int num_cols,
                                const PackOptions& options,
                                ScaleForm form = ScaleForm::kFile);

// One row of the matrix, exactly as dequantize_row() gives it. Not of paired scales.
void unpack_weight_row(const CpuWeight& weight, int row_idx, float* out);

class LinearDriver {
 public:
  // All three must outlive the driver.
  LinearDriver(ThreadPool& pool, const LinearKernels& kernels, MemoryCounters& counters);
  ~LinearDriver();
  LinearDriver(const LinearDriver&) = delete;
  LinearDriver& operator=(const LinearDriver&) = delete;

  void linear(const LinearInput& input, std::span<const LinearOutput> outputs);
  void gated_linear(const LinearInput& input,
                    const Weight& gate,
                    const Weight& up,
                    Activation activation,
                    float* out);
  void embed(const Weight& table, const std::int32_t* ids, int num_rows, float scale, float* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
