#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_rows.h"

namespace headrace {
namespace {

// Rows that share one unpacking of a panel; their codes stay in the second-level cache while panels
// pass.
constexpr int kMaxRowBlock = 192;
// k that many rows pass before the next: 16 KB of codes and 4 KB of scales, or 16 KB of values,
// stay in the first-level cache. Up to kFewRows one pass of the panel serves all rows.
constexpr int kUnpackedK = 512;
constexpr int kUnpackedFloatK = 128;
constexpr int kFewRows = 6;
constexpr int kMaxSegments = 4;
constexpr int kMaxTerms = kUnpackedK / 16;
constexpr int kTasksPerThread = 4;

// What a worker owns: segments of sums of one or two panels, and a panel spread out.
struct alignas(64) WorkerScratch {
  std::array<float, std::size_t{2} * kMaxSegments * kMaxRowBlock * kPanelCols> acc;
  std::array<std::uint8_t, std::size_t{kUnpackedK} * kPanelCols> codes;
  std::array<float, std::size_t{kMaxTerms} * kPanelCols> scales;
  std::array<float, std::size_t{kMaxTerms} * kPanelCols> offsets;
  std::array<float, std::size_t{kUnpackedFloatK} * kPanelCols> values;
};

constexpr std::int64_t kUpAcc = std::int64_t{kMaxSegments} * kMaxRowBlock * kPanelCols;
constexpr std::int64_t kSegmentStride = std::int64_t{kMaxRowBlock} * kPanelCols;

const CpuWeight& cpu_weight(const Weight& weight) {
  HR_DCHECK(dynamic_cast<const CpuWeight*>(&weight) != nullptr);
  return static_cast<const CpuWeight&>(weight);
}

int num_segments(const CpuWeight& weight) {
  return weight.k_split == KSplit::kFourSegments ? kMaxSegments : 1;
}

// Where segment i of K begins: on a group's border, the groups dealt as evenly as they go.
int segment_begin(int num_cols, int segments, int i) {
  if (i == segments) {
    return num_cols;
  }
  const int groups = (num_cols + kGroup - 1) / kGroup;
  return static_cast<int>(std::int64_t{groups} * i / segments) * kGroup;
}

struct RowBlocks {
  int num_blocks = 1;
  int block_rows = 1;

  explicit RowBlocks(int num_rows) {
    constexpr int kTileRows = 6;
    num_blocks = (num_rows + kMaxRowBlock - 1) / kMaxRowBlock;
    const int even = (num_rows + num_blocks - 1) / num_blocks;
    block_rows = num_blocks == 1 ? num_rows : (even + kTileRows - 1) / kTileRows * kTileRows;
    num_blocks = (num_rows + block_rows - 1) / block_rows;
  }
};

}  // namespace

struct LinearDriver::State {
  State(ThreadPool& pool_in, const LinearKernels& kernels_in, MemoryCounters& counters)
      : pool(pool_in), kernels(kernels_in), rows(pool_in, kernels_in, counters) {
    const auto threads = static_cast<std::size_t>(pool.num_threads());
    Result<Buffer> memory =
        allocate_counted(threads * sizeof(WorkerScratch), MemoryPart::kWorkspace, counters);
    HR_CHECK(memory.ok());
    scratch = std::move(memory).value();
  }

  ThreadPool& pool;
  const LinearKernels& kernels;
  LinearRows rows;
  Buffer scratch;

  WorkerScratch& worker(int idx) const { return scratch.as<WorkerScratch>()[idx]; }

  // The sums of one panel for rows [row_begin, row_begin + num_rows), by segments, to acc.
  void accumulate(const CpuWeight& weight,
                  int panel_idx,
                  int row_begin,
                  int num_rows,
                  WorkerScratch& own,
                  float* acc) const {
    PanelJob job;
    job.dtype = weight.dtype;
    job.panel = weight.panel(panel_idx);
    job.rows = rows.view(weight.dtype, row_begin, num_rows);
    const bool unpacked = kernels.unpacks != nullptr && kernels.unpacks(weight.dtype, num_rows);
    const UnpackedPanel panel{
        own.codes.data(), own.scales.data(), own.offsets.data(), own.values.data()};
    const int chunk = is_quantized(weight.dtype) ? kUnpackedK : kUnpackedFloatK;
    const int segments = num_segments(weight);
    for (int i = 0; i < segments; ++i) {
      job.acc = acc + i * kSegmentStride;
      std::memset(job.acc, 0, static_cast<std::size_t>(num_rows) * kPanelCols * sizeof(float));
      const int end = segment_begin(weight.num_cols, segments, i + 1);
      job.k_begin = segment_begin(weight.num_cols, segments, i);
      while (job.k_begin < end) {
        job.k_end = unpacked || num_rows > kFewRows ? std::min(end, job.k_begin + chunk) : end;
        if (unpacked) {
          kernels.unpack(job, panel);
          kernels.dot_unpacked(job, panel);
        } else {
          kernels.dot(job);
        }
        job.k_begin = job.k_end;
      }
    }
  }

  // fn(unit, row_begin, num_rows, worker) for every unit and block of rows. With one block a task
  // is a run of units, so that a worker reads one stretch of memory; with more, blocks are outer
  // and their rows stay in cache.
  template <typename Fn>
  void for_units(int num_units, int num_rows, Fn&& fn) const {
    const RowBlocks blocks(num_rows);
    const int tasks_per_block =
        pool.num_threads() == 1 ? 1 : std::min(num_units, pool.num_threads() * kTasksPerThread);
    pool.run(tasks_per_block * blocks.num_blocks, [&](int task, int worker_idx) {
      const int row_begin = task / tasks_per_block * blocks.block_rows;
      const int block_rows = std::min(blocks.block_rows, num_rows - row_begin);
      const std::int64_t part = task % tasks_per_block;
      const auto begin = static_cast<int>(num_units * part / tasks_per_block);
      const auto end = static_cast<int>(num_units * (part + 1) / tasks_per_block);
      for (int unit = begin; unit < end; ++unit) {
        fn(unit, row_begin, block_rows, worker_idx);
      }
    });
  }
};

LinearDriver::LinearDriver(ThreadPool& pool, const LinearKernels& kernels, MemoryCounters& counters)
    : state_(std::make_unique<State>(pool, kernels, counters)) {}
LinearDriver::~LinearDriver() = default;

namespace {

// The panel's part of an output matrix.
FinishJob finish_job(
    const CpuWeight& weight, int panel_idx, int row_begin, int num_rows, float* out) {
  FinishJob job;
  job.segment_stride = kSegmentStride;
  job.num_segments = num_segments(weight);
  job.num_rows = num_rows;
  if (weight.num_planes == 2) {
    HR_CHECK(job.num_segments == 1);
    job.num_segments = 2;
    job.segment_stride = kPanelCols;
    job.row_stride = 2 * kPanelCols;
  }
  job.num_cols = std::min(kPanelCols, weight.num_rows - panel_idx * kPanelCols);
  job.out_stride = weight.num_rows;
  job.out = out + row_begin * job.out_stride + static_cast<std::ptrdiff_t>(panel_idx) * kPanelCols;
  return job;
}

}  // namespace

void LinearDriver::linear(const LinearInput& input, std::span<const LinearOutput> outputs) {
  if (input.num_rows == 0 || outputs.empty()) {
    return;
  }
  LinearRows::Needs needs;
  int num_units = 0;
  int num_planes = 1;
  const int num_cols = outputs.front().weight->num_cols;
  for (const LinearOutput& output : outputs) {
    HR_DCHECK(output.weight->num_cols == num_cols);
    needs.add(cpu_weight(*output.weight).dtype, cpu_weight(*output.weight).num_planes);
    num_planes = cpu_weight(*output.weight).num_planes;
    num_units += cpu_weight(*output.weight).num_panels();
  }
  state_->rows.prepare(input, num_cols, needs);
  state_->for_units(num_units,
                    input.num_rows * num_planes,
                    [&](int unit, int row_begin, int num_rows, int worker_idx) {
                      const LinearOutput* output = outputs.data();
                      while (unit >= cpu_weight(*output->weight).num_panels()) {
                        unit -= cpu_weight(*output->weight).num_panels();
                        ++output;
                      }
                      const CpuWeight& weight = cpu_weight(*output->weight);
                      WorkerScratch& own = state_->worker(worker_idx);
                      state_->accumulate(weight, unit, row_begin, num_rows, own, own.acc.data());
                      FinishJob job = finish_job(
                          weight, unit, row_begin / num_planes, num_rows / num_planes, output->out);
                      job.acc = own.acc.data();
                      job.bias =
                          output->bias == nullptr
                              ? nullptr
                              : output->bias + static_cast<std::ptrdiff_t>(unit) * kPanelCols;
                      job.add_to_out = output->add_to_out;
                      state_->kernels.finish(job);
                    });
}

void LinearDriver::gated_linear(const LinearInput& input,
                                const Weight& gate,
                                const Weight& up,
                                Activation activation,
                                float* out) {
  if (input.num_rows == 0) {
    return;
  }
  const CpuWeight& gate_weight = cpu_weight(gate);
  const CpuWeight& up_weight = cpu_weight(up);
  HR_CHECK(gate.num_rows == up.num_rows && gate.num_cols == up.num_cols);
  HR_CHECK(gate_weight.k_split == up_weight.k_split);
  LinearRows::Needs needs;
  HR_CHECK(gate_weight.num_planes == 1 && up_weight.num_planes == 1);
  needs.add(gate_weight.dtype, 1);
  needs.add(up_weight.dtype, 1);
  state_->rows.prepare(input, gate.num_cols, needs);
  const auto finish = activation == Activation::kSilu ? state_->kernels.finish_silu
                                                      : state_->kernels.finish_gelu_tanh;
  state_->for_units(gate_weight.num_panels(),
                    input.num_rows,
                    [&](int unit, int row_begin, int num_rows, int worker_idx) {
                      WorkerScratch& own = state_->worker(worker_idx);
                      float* up_acc = own.acc.data() + kUpAcc;
                      state_->accumulate(
                          gate_weight, unit, row_begin, num_rows, own, own.acc.data());
                      state_->accumulate(up_weight, unit, row_begin, num_rows, own, up_acc);
                      FinishJob job = finish_job(gate_weight, unit, row_begin, num_rows, out);
                      job.acc = own.acc.data();
                      job.up_acc = up_acc;
                      finish(job);
                    });
}

void LinearDriver::embed(
    const Weight& table, const std::int32_t* ids, int num_rows, float scale, float* out) {
  const CpuWeight& weight = cpu_weight(table);
  constexpr int kRowsPerTask = 8;
  state_->pool.run((num_rows + kRowsPerTask - 1) / kRowsPerTask, [&](int task, int /*worker*/) {
    const int end = std::min(num_rows, (task + 1) * kRowsPerTask);
    for (int row = task * kRowsPerTask; row < end; ++row) {
      HR_DCHECK(ids[row] >= 0 && ids[row] < weight.num_rows);
      float* values = out + std::int64_t{row} * weight.num_cols;
      unpack_weight_row(weight, ids[row], values);
      for (int k = 0; k < weight.num_cols; ++k) {
        values[k] *= scale;
      }
    }
  });
}

}  // namespace headrace
