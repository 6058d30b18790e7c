#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace headrace {
namespace {

constexpr std::int64_t kSmallValues =
    std::int64_t{32} * 1024;  // fewer are done before a worker wakes up
constexpr int kTasksPerThread = 4;

const RowKernels& row_kernels(CpuTier tier) {
#if defined(__x86_64__)
  if (tier == CpuTier::kAvx2) {
    return avx2::row_kernels();
  }
  if (tier == CpuTier::kAvx512Vnni) {
    return avx512vnni::row_kernels();
  }
#endif
  return scalar::row_kernels();
}

const LinearKernels& linear_kernels(CpuTier tier) {
#if defined(__x86_64__)
  if (tier == CpuTier::kAvx2) {
    return avx2::linear_kernels();
  }
  if (tier == CpuTier::kAvx512Vnni) {
    return avx512vnni::linear_kernels();
  }
#endif
  return scalar::linear_kernels();
}

// The angle is rounded to float32 first, as transformers computes it; its cosine and sine are then
// exact to a rounding.
void rope_rows(const RopeArgs& args, int begin, int end, float* cos_sin) {
  const int half = args.rotary_dim / 2;
  for (int row = begin; row < end; ++row) {
    float* cosines = cos_sin + static_cast<std::ptrdiff_t>(row) * args.rotary_dim;
    const auto position = static_cast<float>(args.positions[row]);
    for (int i = 0; i < half; ++i) {
      const auto angle = static_cast<double>(position * args.inv_freq[i]);
      cosines[i] = static_cast<float>(std::cos(angle)) * args.scale;
      cosines[half + i] = static_cast<float>(std::sin(angle)) * args.scale;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  constexpr int kMostThreads = 1024;
  if (options.num_threads < 1 || options.num_threads > kMostThreads) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} threads: choose from 1 to {}",
                      options.num_threads,
                      kMostThreads);
  }
  HR_ASSIGN_OR_RETURN(const CpuTier tier, choose_tier(options.tier));
  return std::unique_ptr<Backend>(
      std::make_unique<CpuBackend>(tier, options.num_threads, options.stream));
}

CpuBackend::CpuBackend(CpuTier tier, int num_threads, StreamMode stream)
    : tier_(tier),
      stream_(stream),
      scale_form_(tier == CpuTier::kAvx512Vnni && pairs_scales_well() ? ScaleForm::kPaired
                                                                      : ScaleForm::kFile),
      kernels_(row_kernels(tier)),
      pool_(num_threads),
      linear_(pool_, linear_kernels(tier), counters_),
      attention_scratch_(counters_),
      plan_(std::make_shared<AttentionPlan>()) {}

BackendInfo CpuBackend::info() const { return {"cpu", tier_name(tier_), pool_.num_threads()}; }

Result<Buffer> CpuBackend::alloc(std::size_t bytes, MemoryPart part) {
  return allocate_counted(bytes, part, counters_);
}

Result<std::unique_ptr<Weight>> CpuBackend::pack(const TensorView& view,
                                                 const PackOptions& options) {
  return pack_weight(view, options, pool_, counters_, scale_form_);
}

std::size_t CpuBackend::packed_bytes(DType dtype,
                                     int num_rows,
                                     int num_cols,
                                     const PackOptions& options) const {
  return packed_weight_bytes(dtype, num_rows, num_cols, options, scale_form_);
}

std::size_t CpuBackend::kv_block_bytes(KvType type, int num_kv_heads, int head_dim) const {
  const std::size_t value_bytes = type == KvType::kF16 ? 2 : 4;
  return 2 * static_cast<std::size_t>(num_kv_heads) * static_cast<std::size_t>(head_dim) *
         kBlockTokens * value_bytes;
}

void CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
  submit([=] {
    if (bytes > 0) {
      std::memcpy(device, host, bytes);
    }
  });
}

void CpuBackend::download(void* host, const void* device, std::size_t bytes) {
  submit([=] {
    if (bytes > 0) {
      std::memcpy(host, device, bytes);
    }
  });
}

void CpuBackend::synchronize() {
  for (const std::function<void()>& op : queue_) {
    op();
  }
  queue_.clear();
}

template <typename Fn>
void CpuBackend::for_rows(int num_rows, std::int64_t row_values, Fn&& fn) {
  if (num_rows <= 1 || num_rows * row_values <= kSmallValues) {
    fn(0, num_rows);
    return;
  }
  const int num_tasks = std::min(num_rows, pool_.num_threads() * kTasksPerThread);
  pool_.run(num_tasks, [&](int task, int) {
    const std::int64_t rows = num_rows;
    fn(static_cast<int>(rows * task / num_tasks), static_cast<int>(rows * (task + 1) / num_tasks));
  });
}

void CpuBackend::embed(
    const Weight& table, const std::int32_t* ids, int num_rows, float scale, float* out) {
  submit([this, &table, ids, num_rows, scale, out] {
    linear_.embed(table, ids, num_rows, scale, out);
  });
}

void CpuBackend::linear(const LinearInput& input, std::span<const LinearOutput> outputs) {
  if (stream_ == StreamMode::kEager) {
    linear_.linear(input, outputs);
    return;
  }
  submit([this, input, copy = std::vector<LinearOutput>(outputs.begin(), outputs.end())] {
    linear_.linear(input, copy);
  });
}

void CpuBackend::gated_linear(const LinearInput& input,
                              const Weight& gate,
                              const Weight& up,
                              Activation activation,
                              float* out) {
  submit([this, input, &gate, &up, activation, out] {
    linear_.gated_linear(input, gate, up, activation, out);
  });
}

void CpuBackend::rope_table(const RopeArgs& args, float* cos_sin) {
  constexpr int kValuesPerAngle = 64;  // an angle costs as much as this many plain values
  submit([this, args, cos_sin] {
    for_rows(args.num_rows,
             std::int64_t{args.rotary_dim} * kValuesPerAngle,
             [&](int begin, int end) { rope_rows(args, begin, end, cos_sin); });
  });
}

void CpuBackend::rope_append(const RopeAppendArgs& args) {
  HR_CHECK(args.kv.head_dim % 16 == 0 && args.rotary_dim % 2 == 0 &&
           args.rotary_dim <= args.kv.head_dim);
  submit([this, args] {
    const std::int64_t row_values =
        std::int64_t{args.num_heads + 4 * args.kv.num_kv_heads} * args.kv.head_dim;
    for_rows(args.num_rows, row_values, [&](int begin, int end) {
      kernels_.rope_append(args, begin, end);
    });
  });
}

void CpuBackend::plan_attention(const StepLayout& layout) {
  if (stream_ == StreamMode::kLazy) {
    plan_ = std::make_shared<AttentionPlan>();
  }
  plan_->build(layout);
}

void CpuBackend::attention(const AttentionArgs& args) {
  submit([this, args, plan = plan_] { plan->run(args, kernels_, pool_, attention_scratch_); });
}

// NOLINTNEXTLINE(readability-function-size): the interface's signature
void CpuBackend::rms_norm(const float* y,
                          const float* weight,
                          float eps,
                          int num_rows,
                          int dim,
                          bool add_to_out,
                          float* out) {
  const auto norm = add_to_out ? kernels_.rms_norm_add : kernels_.rms_norm;
  submit([this, y, weight, eps, num_rows, dim, norm, out] {
    for_rows(num_rows, dim, [&](int begin, int end) {
      const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(begin) * dim;
      norm(y + first, weight, eps, end - begin, dim, out + first);
    });
  });
}

void CpuBackend::gather_rows(
    const float* x, const std::int32_t* rows, int num_rows, int dim, float* out) {
  submit([this, x, rows, num_rows, dim, out] {
    for_rows(num_rows, dim, [&](int begin, int end) {
      for (int row = begin; row < end; ++row) {
        std::memcpy(out + static_cast<std::ptrdiff_t>(row) * dim,
                    x + static_cast<std::ptrdiff_t>(rows[row]) * dim,
                    static_cast<std::size_t>(dim) * sizeof(float));
      }
    });
  });
}

}  // namespace headrace
