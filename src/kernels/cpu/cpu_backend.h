// The backend of the processor the program runs on: dispatch to the tier's kernels, the in-order
// stream, and the gang of worker threads. Contract: kernels/backend.h. Buffers must die before
// their backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/tier.h"
#include "kernels/memory.h"

namespace headrace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(CpuTier tier, int num_threads, StreamMode stream);

  BackendInfo info() const override;
  Result<Buffer> alloc(std::size_t bytes, MemoryPart part) override;
  const MemoryCounters& memory() const override { return counters_; }

  Result<std::unique_ptr<Weight>> pack(const TensorView& view, const PackOptions& options) override;
  std::size_t packed_bytes(DType dtype,
                           int num_rows,
                           int num_cols,
                           const PackOptions& options) const override;
  std::size_t kv_block_bytes(KvType type, int num_kv_heads, int head_dim) const override;

  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override;

  void embed(
      const Weight& table, const std::int32_t* ids, int num_rows, float scale, float* out) override;
  void linear(const LinearInput& input, std::span<const LinearOutput> outputs) override;
  void gated_linear(const LinearInput& input,
                    const Weight& gate,
                    const Weight& up,
                    Activation activation,
                    float* out) override;
  void rope_table(const RopeArgs& args, float* cos_sin) override;
  void rope_append(const RopeAppendArgs& args) override;
  void plan_attention(const StepLayout& layout) override;
  void attention(const AttentionArgs& args) override;
  void rms_norm(const float* y,
                const float* weight,
                float eps,
                int num_rows,
                int dim,
                bool add_to_out,
                float* out) override;
  void gather_rows(
      const float* x, const std::int32_t* rows, int num_rows, int dim, float* out) override;

 private:
  // Now, or at synchronize() in lazy mode.
  template <typename Op>
  void submit(Op&& op) {
    if (stream_ == StreamMode::kLazy) {
      queue_.emplace_back(std::forward<Op>(op));
    } else {
      op();
    }
  }

  // fn(begin, end) over ranges of rows, by the pool where num_rows * row_values is worth a wake-up.
  template <typename Fn>
  void for_rows(int num_rows, std::int64_t row_values, Fn&& fn);

  const CpuTier tier_;
  const StreamMode stream_;
  const ScaleForm scale_form_;  // of weights that can have it
  const RowKernels& kernels_;
  MemoryCounters counters_;
  ThreadPool pool_;
  LinearDriver linear_;
  AttentionScratch attention_scratch_;
  std::shared_ptr<AttentionPlan> plan_;  // shared with the queued operations of its step
  std::vector<std::function<void()>> queue_;
};

}  // namespace headrace
