// Attention of one layer: multiply-adds a second, and bytes of cache a second, by shape and tier.
// One thread.
#include <benchmark/benchmark.h>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

struct Case {
  std::string name;
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int num_queries;
  int context;
};

// One sequence whose last num_queries tokens are computed.
class Layer {
 public:
  Layer(const Case& shape, CpuTier tier) : shape_(shape) {
    backend_ = std::move(make_cpu_backend({1, tier_name(tier), StreamMode::kEager})).value();
    const int num_blocks = (shape.context + kBlockTokens - 1) / kBlockTokens + 1;
    kv_.type = KvType::kF16;
    kv_.num_kv_heads = shape.num_kv_heads;
    kv_.head_dim = shape.head_dim;
    kv_.block_stride = static_cast<std::int64_t>(
        backend_->kv_block_bytes(kv_.type, kv_.num_kv_heads, kv_.head_dim));
    memory_ = std::move(backend_->alloc(static_cast<std::size_t>(kv_.block_stride * num_blocks),
                                        MemoryPart::kKv))
                  .value();
    kv_.base = memory_.as<>();
    auto* halves = memory_.as<std::uint16_t>();
    for (std::size_t i = 0; i < memory_.bytes() / 2; ++i) {
      halves[i] = static_cast<std::uint16_t>(0x3800 + i * 2654435761U % 0x300);  // 0.5 to 0.9
    }
    table_.resize(static_cast<std::size_t>(num_blocks));
    std::iota(table_.begin(), table_.end(), 1);
    const auto values = static_cast<std::size_t>(shape.num_queries) *
                        static_cast<std::size_t>(shape.num_heads * shape.head_dim);
    q_.resize(values);
    out_.resize(values);
    for (std::size_t i = 0; i < values; ++i) {
      q_[i] = std::sin(static_cast<float>(i));
    }
  }

  void run() {
    const std::vector<std::int32_t> offsets = {0, shape_.num_queries};
    StepLayout::Group group;
    group.max_blocks = static_cast<int>(table_.size());
    group.block_tables = table_;
    StepLayout layout;
    layout.num_rows = shape_.num_queries;
    layout.num_sequences = 1;
    layout.query_offsets = offsets;
    layout.context_lens = std::span(&shape_.context, 1);
    layout.groups = std::span(&group, 1);
    backend_->plan_attention(layout);
    AttentionArgs args;
    args.q = q_.data();
    args.out = out_.data();
    args.num_heads = shape_.num_heads;
    args.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    args.kv = kv_;
    backend_->attention(args);
    backend_->synchronize();
  }

  // Of both products, over what the mask leaves.
  double multiply_adds() const {
    const double seen = shape_.context - (shape_.num_queries - 1) / 2.0;
    return 2.0 * shape_.num_queries * seen * shape_.num_heads * shape_.head_dim;
  }
  double cache_bytes() const {
    return 4.0 * shape_.context * shape_.num_kv_heads * shape_.head_dim;
  }

 private:
  Case shape_;
  std::unique_ptr<Backend> backend_;
  Buffer memory_;
  KvLayer kv_;
  std::vector<std::int32_t> table_;
  std::vector<float> q_;
  std::vector<float> out_;
};

void measure(benchmark::State& state, const Case& shape, CpuTier tier) {
  Layer layer(shape, tier);
  for (auto _ : state) {
    layer.run();
  }
  state.counters["MAC"] =
      benchmark::Counter(layer.multiply_adds(), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cache"] = benchmark::Counter(layer.cache_bytes(),
                                               benchmark::Counter::kIsIterationInvariantRate,
                                               benchmark::Counter::kIs1024);
}

void register_all() {
  const Case cases[] = {{"smollm2/prefill512", 9, 3, 64, 512, 512},
                        {"smollm2/prefill512of4096", 9, 3, 64, 512, 4096},
                        {"smollm2/decode512", 9, 3, 64, 1, 512},
                        {"smollm2/decode4096", 9, 3, 64, 1, 4096},
                        {"qwen1.5b/prefill512", 12, 2, 128, 512, 512},
                        {"qwen1.5b/decode4096", 12, 2, 128, 1, 4096},
                        {"qwen1.5b/decode131072", 12, 2, 128, 1, 131072},
                        {"gemma3/prefill512", 4, 1, 256, 512, 512},
                        {"gemma3/decode512", 4, 1, 256, 1, 512}};
  for (const CpuTier tier : available_tiers()) {
    for (const Case& shape : cases) {
      benchmark::RegisterBenchmark(
          (std::string(tier_name(tier)) + "/" + shape.name).c_str(),
          [shape, tier](benchmark::State& state) { measure(state, shape, tier); })
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
