#include "kernels/probe.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/probe_kernels.h"
#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

constexpr int kTasksPerThread =
    8;  // a thread that wakes late, or is taken away, has the others take its part
// Short bursts, so that on a busy machine some are left alone.
constexpr int kBursts = 16;
constexpr double kBurstSeconds = 0.001;
constexpr int kPasses = 5;
constexpr double kReadSeconds = 0.01;
constexpr std::size_t kReadStep = 4096;

const ProbeKernels& probe_kernels(CpuTier tier) {
#if defined(__x86_64__)
  if (tier == CpuTier::kAvx2) {
    return avx2::probe_kernels();
  }
  if (tier == CpuTier::kAvx512Vnni) {
    return avx512vnni::probe_kernels();
  }
#endif
  return scalar::probe_kernels();
}

}  // namespace

struct MachineProbe::State {
  State(CpuTier tier, int num_threads) : kernels(probe_kernels(tier)), pool(num_threads) {}

  // Seconds that body(), run by the pool as so many tasks, takes.
  template <typename Body>
  double time(int num_tasks, Body&& body) {
    const TimePoint start = clock.now();
    pool.run(num_tasks, body);
    return to_seconds(clock.now() - start);
  }

  // Operations a second, the best burst.
  double best_rate(std::int64_t (*loop)(std::int64_t), std::int64_t& rounds) {
    const int num_tasks = pool.num_threads() * kTasksPerThread;
    double best = 0;
    for (int burst = 0; burst < kBursts;) {
      std::atomic<std::int64_t> operations{0};
      const double seconds = time(num_tasks, [&](int, int) {
        operations.fetch_add(loop(rounds), std::memory_order_relaxed);
      });
      if (seconds < kBurstSeconds) {
        rounds *= 2;  // found once, kept for later calls
        continue;
      }
      best = std::max(best, static_cast<double>(operations.load()) / seconds);
      ++burst;
    }
    return best;
  }

  const ProbeKernels& kernels;
  MemoryCounters counters;
  ThreadPool pool;
  SteadyClock clock;
  Buffer buffer;
  std::int64_t int8_rounds = 1024;
  std::int64_t f32_rounds = 1024;
  std::atomic<std::uint64_t> sink{0};  // what was read, so that reading is not left out
};

Result<std::unique_ptr<MachineProbe>> MachineProbe::create(std::string_view tier, int num_threads) {
  HR_ASSIGN_OR_RETURN(const CpuTier chosen, choose_tier(tier));
  return std::unique_ptr<MachineProbe>(
      new MachineProbe(std::make_unique<State>(chosen, num_threads)));
}

MachineProbe::MachineProbe(std::unique_ptr<State> state) : state_(std::move(state)) {}
MachineProbe::~MachineProbe() = default;

double MachineProbe::int8_ops_per_s() {
  return state_->best_rate(state_->kernels.int8, state_->int8_rounds);
}

double MachineProbe::f32_flop_per_s() {
  return state_->best_rate(state_->kernels.f32, state_->f32_rounds);
}

Status MachineProbe::reserve(std::size_t bytes) {
  if (state_->buffer.bytes() < bytes) {
    state_->buffer = Buffer();
    const std::size_t whole = (bytes + kReadStep - 1) / kReadStep * kReadStep;
    HR_ASSIGN_OR_RETURN(state_->buffer,
                        allocate_counted(whole, MemoryPart::kWorkspace, state_->counters));
    // Written once, by the threads that read it: untouched pages may all be one page of zeros.
    auto* const data = state_->buffer.as<>();
    state_->pool.run(static_cast<int>(std::min<std::size_t>(whole / kReadStep, 64)),
                     [&](int task, int) {
                       const std::size_t num_tasks = std::min<std::size_t>(whole / kReadStep, 64);
                       const auto from = whole * static_cast<std::size_t>(task) / num_tasks;
                       const auto to = whole * (static_cast<std::size_t>(task) + 1) / num_tasks;
                       std::fill(data + from, data + to, std::byte{1});
                     });
  }
  return {};
}

double MachineProbe::read_bytes_per_s(std::size_t bytes) {
  const std::size_t num_steps = std::max<std::size_t>(1, bytes / kReadStep);
  HR_CHECK(num_steps * kReadStep <= state_->buffer.bytes());
  const auto num_tasks = static_cast<int>(std::min<std::size_t>(
      num_steps, static_cast<std::size_t>(state_->pool.num_threads()) * kTasksPerThread));
  const std::byte* const data = state_->buffer.as<const std::byte>();
  double best = 0;
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{4096}}) {
    double elapsed = 0;
    for (int pass = 0; pass < kPasses || elapsed < kReadSeconds; ++pass) {
      const double seconds = state_->time(num_tasks, [&](int task, int) {
        const auto first =
            num_steps * static_cast<std::size_t>(task) / static_cast<std::size_t>(num_tasks);
        const auto end =
            num_steps * (static_cast<std::size_t>(task) + 1) / static_cast<std::size_t>(num_tasks);
        state_->sink.fetch_xor(
            state_->kernels.read(data + first * kReadStep, (end - first) * kReadStep, ahead),
            std::memory_order_relaxed);
      });
      elapsed += seconds;
      best = std::max(best, static_cast<double>(num_steps * kReadStep) / seconds);
    }
  }
  return best;
}

}  // namespace headrace
