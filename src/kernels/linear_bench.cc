// Linear layers of SmolLM2-135M and Qwen2.5-1.5B at several numbers of rows, with what they reach
// of the machine: "peak" is the share of the vpdpbusd rate and "read" that of the read bandwidth,
// both measured at the start, each thread with its own share. Weights are several copies in turn,
// so that few rows stream them from memory.
//   linear_bench --benchmark_filter=Q4_K
#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <fmt/format.h>

#include "kernels/cpu/tier.h"
#include "kernels/linear_fixture.h"

namespace headrace {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Best of several runs, in seconds.
template <typename Fn>
double best_time(int runs, Fn&& fn) {
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    fn();
    best = std::min(best, seconds(std::chrono::steady_clock::now() - start));
  }
  return best;
}

#define HR_DOT(n) "vpdpbusd %%zmm30, %%zmm31, %%zmm" #n "\n"

// 24 independent chains: 24 * 64 multiply-adds a turn.
__attribute__((target("avx512f,avx512vnni"))) void spin_dots(int turns) {
  for (int i = 0; i < turns; ++i) {
    asm volatile(HR_DOT(0) HR_DOT(1) HR_DOT(2) HR_DOT(3) HR_DOT(4) HR_DOT(5) HR_DOT(6) HR_DOT(7)
                     HR_DOT(8) HR_DOT(9) HR_DOT(10) HR_DOT(11) HR_DOT(12) HR_DOT(13) HR_DOT(14)
                         HR_DOT(15) HR_DOT(16) HR_DOT(17) HR_DOT(18) HR_DOT(19) HR_DOT(20)
                             HR_DOT(21) HR_DOT(22) HR_DOT(23)::
                                 : "xmm0",
                                   "xmm1",
                                   "xmm2",
                                   "xmm3",
                                   "xmm4",
                                   "xmm5",
                                   "xmm6",
                                   "xmm7",
                                   "xmm8",
                                   "xmm9",
                                   "xmm10",
                                   "xmm11",
                                   "xmm12",
                                   "xmm13",
                                   "xmm14",
                                   "xmm15",
                                   "xmm16",
                                   "xmm17",
                                   "xmm18",
                                   "xmm19",
                                   "xmm20",
                                   "xmm21",
                                   "xmm22",
                                   "xmm23");
  }
}

// Multiply-adds a second of one thread; 0 where there is no such instruction.
double dot_peak() {
  if (!choose_tier("avx512vnni").ok()) {
    return 0;
  }
  constexpr int kTurns = 100000;
  return kTurns * 24.0 * 64.0 / best_time(15, [] { spin_dots(kTurns); });
}

// Bytes a second of one thread: the best of many stretches, each too large for a core's own caches.
double read_bandwidth() {
  constexpr std::size_t kStretch = std::size_t{1} << 20;  // 8 MB
  const std::vector<std::uint64_t> memory(kStretch * 32, 1);
  double best = 1e30;
  for (std::size_t begin = 0; begin < memory.size(); begin += kStretch) {
    const double time = best_time(1, [&] {
      std::uint64_t sums[8] = {};
      for (std::size_t i = begin; i < begin + kStretch; i += 8) {
        __builtin_prefetch(memory.data() + i + 512);
        for (std::size_t j = 0; j < 8; ++j) {
          sums[j] += memory[i + j];
        }
      }
      benchmark::DoNotOptimize(sums);
    });
    best = std::min(best, time);
  }
  return static_cast<double>(kStretch * sizeof(std::uint64_t)) / best;
}

struct Shape {
  const char* name;
  DType dtype;
  int num_rows;
  int num_cols;
};

constexpr Shape kShapes[] = {
    {"smol_qkv", DType::kQ4_1, 960, 576},
    {"smol_gate_up", DType::kQ4_1, 3072, 576},
    {"smol_down", DType::kQ4_1, 576, 1536},
    {"smol_head", DType::kQ8_0, 49152, 576},
    {"qwen_qkv", DType::kQ4_K, 2048, 1536},
    {"qwen_gate_up", DType::kQ4_K, 17920, 1536},
    {"qwen_down_q4", DType::kQ4_K, 1536, 8960},
    {"qwen_down_q6", DType::kQ6_K, 1536, 8960},
    {"square_f16", DType::kF16, 2048, 2048},
    {"square_q4_0", DType::kQ4_0, 2048, 2048},
    {"square_q8_0", DType::kQ8_0, 2048, 2048},
};

void run_shape(benchmark::State& state,
               const LinearKernels& kernels,
               const Shape& shape,
               ScaleForm form) {
  static const double peak = dot_peak();
  static const double bandwidth = read_bandwidth();
  const auto num_rows = static_cast<int>(state.range(0));
  const auto threads = static_cast<int>(state.range(1));
  LinearBench bench(kernels, threads);
  const StoredMatrix matrix(shape.dtype, shape.num_rows, shape.num_cols, 1);
  std::vector<std::unique_ptr<Weight>> weights;
  const std::size_t copies = num_rows > 16 ? 1 : 1 + (std::size_t{300} << 20) / matrix.bytes.size();
  for (std::size_t i = 0; i < copies; ++i) {
    weights.push_back(bench.pack(matrix, KSplit::kWhole, form));
  }
  const std::vector<float> x =
      random_floats(static_cast<std::size_t>(num_rows) * shape.num_cols, 2);
  std::vector<float> out(static_cast<std::size_t>(num_rows) * shape.num_rows);
  std::size_t next = 0;
  double best = 1e30;
  for (auto _ : state) {
    const LinearOutput output = {.weight = weights[next++ % weights.size()].get(),
                                 .out = out.data()};
    const auto start = std::chrono::steady_clock::now();
    bench.driver.linear({.x = x.data(), .num_rows = num_rows}, {&output, 1});
    best = std::min(best, seconds(std::chrono::steady_clock::now() - start));
  }
  const double products = double{1} * num_rows * shape.num_rows * shape.num_cols;
  state.counters["best_us"] = best * 1e6;
  state.counters["GMAC/s"] = products / best * 1e-9;
  state.counters["peak"] = peak == 0 ? 0 : products / best / peak / threads;
  state.counters["read"] = static_cast<double>(weights[0]->bytes) / best / bandwidth / threads;
}

void register_shape(const LinearKernels& kernels, const Shape& shape, ScaleForm form) {
  const std::string name = fmt::format("{}{}/{}/{}",
                                       kernels.tier,
                                       form == ScaleForm::kPaired ? "_paired" : "",
                                       shape.name,
                                       dtype_info(shape.dtype).name);
  benchmark::RegisterBenchmark(
      name.c_str(),
      [&kernels, &shape, form](benchmark::State& state) { run_shape(state, kernels, shape, form); })
      ->ArgsProduct({{1, 4, 8, 16, 32, 128, 512}, {1, 2}})
      ->ArgNames({"rows", "threads"})
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

void register_shapes() {
  for (const LinearKernels* kernels : runnable_linear_kernels()) {
    if (kernels == &scalar::linear_kernels()) {
      continue;
    }
    for (const Shape& shape : kShapes) {
      register_shape(*kernels, shape, ScaleForm::kFile);
      if (kernels->dot_paired != nullptr && can_pair_scales(shape.dtype, {})) {
        register_shape(*kernels, shape, ScaleForm::kPaired);
      }
    }
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  headrace::register_shapes();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
