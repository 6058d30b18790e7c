#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_rows.h"

namespace headrace {
namespace {

// Rows that share one unpacking of a panel, at most; their codes stay in the second-level cache
// while panels pass.
constexpr int kMaxRowBlock = 512;
constexpr std::int64_t kRowBlockCodes = std::int64_t{5} << 18;
// k that many rows pass before the next: 24 KB of codes and their scales, or 16 KB of values, stay
// in the first-level cache. Up to kFewRows one pass of the panel serves all rows.
constexpr int kUnpackedK = 768;
constexpr int kUnpackedFloatK = 128;
constexpr int kFewRows = 6;
// Rows whose sums are finished while they are in the first-level cache, and whose output is written
// while the next are computed: a multiple of every tile's rows.
constexpr int kFinishRows = 12;
constexpr int kMaxSegments = 4;
constexpr int kMaxTerms = kUnpackedK / 16;
constexpr int kTasksPerThread = 4;
constexpr int kAheadRows = 96;  // up to here memory is worth fetching while rows are multiplied
constexpr int kManyRows = 32;   // from here on a panel is work enough for a task of its own

// What a worker owns: segments of sums of one or two panels, and a panel spread out.
struct alignas(64) WorkerScratch {
  std::array<float, std::size_t{2} * kMaxSegments * kMaxRowBlock * kPanelCols> acc;
  std::array<std::uint8_t, std::size_t{kUnpackedK} * kPanelCols> codes;
  std::array<float, std::size_t{kMaxTerms} * kPanelCols> scales;
  std::array<float, std::size_t{kMaxTerms} * kPanelCols> offsets;
  std::array<float, std::size_t{kUnpackedFloatK} * kPanelCols> values;
  std::array<std::int16_t, std::size_t{kUnpackedK} / kGroup * kPanelCols> pair_scales;
  std::array<std::int16_t, std::size_t{kUnpackedK} / kGroup * kPanelCols> pair_offsets;
  std::array<float, std::size_t{kUnpackedK} / kScaleBlock * kPanelCols> units;
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

// Where segment i of K begins: on the border of a group, or of a pair where scales are paired,
// dealt as evenly as they go.
int segment_begin(const CpuWeight& weight, int i) {
  const int segments = num_segments(weight);
  if (i == segments) {
    return weight.num_cols;
  }
  const int unit = weight.form == ScaleForm::kPaired ? kPair : kGroup;
  const int units = (weight.num_cols + unit - 1) / unit;
  return static_cast<int>(std::int64_t{units} * i / segments) * unit;
}

struct RowRange {
  int begin = 0;
  int count = 0;
};

struct RowBlocks {
  int num_blocks = 1;
  int block_rows = 1;

  RowBlocks(int num_rows, int num_cols) {
    const auto fitting = static_cast<int>(kRowBlockCodes / num_cols) / kFinishRows * kFinishRows;
    const int most = std::clamp(fitting, 8 * kFinishRows, kMaxRowBlock / kFinishRows * kFinishRows);
    num_blocks = num_rows <= kMaxRowBlock && num_rows <= fitting ? 1 : (num_rows + most - 1) / most;
    const int even = (num_rows + num_blocks - 1) / num_blocks;
    block_rows = num_blocks == 1 ? num_rows : (even + kFinishRows - 1) / kFinishRows * kFinishRows;
    num_blocks = (num_rows + block_rows - 1) / block_rows;
  }
};

// Cache lines of `bytes` that each tile of the rows fetches, so that together they fetch all.
int lines_of_tile(std::ptrdiff_t bytes, int num_rows, int tile_rows) {
  const int tiles = (num_rows + tile_rows - 1) / tile_rows;
  return (static_cast<int>(bytes / 64) + tiles - 1) / tiles;
}

// Rows [begin, begin + num_rows) of a job; begin is a multiple of kFinishRows.
PanelJob rows_of(const PanelJob& job, std::int64_t begin, int num_rows) {
  PanelJob part = job;
  RowsView& rows = part.rows;
  const auto advance = [](auto*& p, std::int64_t distance) { p = p == nullptr ? p : p + distance; };
  const std::int64_t units =
      rows.units == nullptr ? begin : begin / kTileRows;  // that strides count
  advance(rows.x, units * rows.x_stride);
  advance(rows.codes, units * rows.code_stride);
  advance(rows.scales, units * rows.group_stride);
  advance(rows.scaled_sums, units * rows.group_stride);
  advance(rows.zero_terms, units * (rows.units == nullptr ? rows.term_stride : rows.group_stride));
  advance(rows.integer_scales, units * rows.group_stride);
  advance(rows.integer_sums, units * rows.group_stride);
  advance(rows.units, units * rows.unit_stride);
  rows.num_rows = num_rows;
  part.acc += begin * kPanelCols;
  return part;
}

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

  // The sums of one panel for rows [row_begin, row_begin + num_rows), by segments, to acc;
  // done(begin, n) when those of rows begin .. begin + n - 1, counted from row_begin, are complete.
  template <typename Fn>
  void accumulate(const CpuWeight& weight,
                  int panel_idx,
                  RowRange range,
                  int worker_idx,
                  float* acc,
                  Fn&& done) const {
    PanelJob job;
    job.dtype = weight.dtype;
    job.panel = weight.panel(panel_idx);
    job.rows = rows.view(weight, range.begin, range.count);
    const int segments = num_segments(weight);
    for (int i = 0; i < segments; ++i) {
      job.acc = acc + i * kSegmentStride;
      job.k_begin = segment_begin(weight, i);
      job.k_end = segment_begin(weight, i + 1);
      const auto each = [&](int begin, int count) {
        if (i == segments - 1) {
          done(begin, count);
        }
      };
      if (weight.form == ScaleForm::kPaired) {
        add_paired_segment(job, worker_idx, each);
      } else {
        add_segment(job, worker_idx, each);
      }
    }
  }

  template <typename Fn>
  void add_segment(PanelJob job, int worker_idx, Fn&& done) const {
    WorkerScratch& own = worker(worker_idx);
    const int num_rows = job.rows.num_rows;
    const int end = job.k_end;
    const bool unpacked = kernels.unpacks != nullptr && kernels.unpacks(job.dtype, num_rows);
    const UnpackedPanel panel{
        own.codes.data(), own.scales.data(), own.offsets.data(), own.values.data()};
    const bool quantized = is_quantized(job.dtype);
    const int chunk = quantized ? kUnpackedK : kUnpackedFloatK;
    const PanelLayout layout = panel_layout(job.dtype);
    const int tile_rows = layout.scales_per_group == 2 ? 4 : 6;
    if (quantized && num_rows > kFewRows && num_rows <= kAheadRows) {
      job.ahead_lines = lines_of_tile(layout.group_bytes, num_rows, tile_rows);
    }
    std::memset(job.acc, 0, static_cast<std::size_t>(num_rows) * kPanelCols * sizeof(float));
    for (; job.k_begin < end; job.k_begin = job.k_end) {
      job.k_end = unpacked || num_rows > kFewRows ? std::min(end, job.k_begin + chunk) : end;
      const int step = job.k_end == end ? kFinishRows : num_rows;
      if (unpacked) {
        kernels.unpack(job, panel);
      }
      for (int row = 0; row < num_rows; row += step) {
        PanelJob part = rows_of(job, row, std::min(step, num_rows - row));
        part.ahead = job.panel + layout.group_at(job.k_end / kGroup) +
                     std::ptrdiff_t{64} * job.ahead_lines * (row / tile_rows);
        if (unpacked) {
          kernels.dot_unpacked(part, panel);
        } else {
          kernels.dot(part);
        }
        if (job.k_end == end) {
          done(row, part.rows.num_rows);
        }
      }
    }
  }

  template <typename Fn>
  void add_paired_segment(PanelJob job, int worker_idx, Fn&& done) const {
    const int num_rows = job.rows.num_rows;
    job.fresh = true;
    if (kernels.unpack_paired_from == 0 || num_rows < kernels.unpack_paired_from) {
      kernels.dot_paired(job);
      done(0, num_rows);
      return;
    }
    WorkerScratch& own = worker(worker_idx);
    const UnpackedPairs panel{
        own.codes.data(), own.pair_scales.data(), own.units.data(), own.pair_offsets.data()};
    const PairedLayout layout = paired_layout(job.dtype);
    if (num_rows <= kAheadRows) {
      job.ahead_lines = lines_of_tile(layout.pair_bytes, num_rows, kTileRows);
    }
    const int end = job.k_end;
    if (job.k_begin == end) {  // a segment of a K of fewer than four pairs; never the last
      std::memset(job.acc, 0, static_cast<std::size_t>(num_rows) * kPanelCols * sizeof(float));
    }
    for (; job.k_begin < end; job.k_begin = job.k_end, job.fresh = false) {
      // Chunks begin and end where blocks do.
      job.k_end = std::min(end, job.k_begin / kScaleBlock * kScaleBlock + kUnpackedK);
      kernels.unpack_paired(job, panel);
      const int step = job.k_end == end ? kFinishRows : num_rows;
      for (int row = 0; row < num_rows; row += step) {
        PanelJob part = rows_of(job, row, std::min(step, num_rows - row));
        part.ahead = job.panel + layout.pair_at(job.k_end / kPair) +
                     std::ptrdiff_t{64} * job.ahead_lines * (row / kTileRows);
        kernels.dot_unpacked_paired(part, panel);
        if (job.k_end == end) {
          done(row, part.rows.num_rows);
        }
      }
    }
  }

  // fn(unit, rows, worker) for every unit and block of rows. With one block a task
  // is a run of units, so that a worker reads one stretch of memory; with more, blocks are outer
  // and their rows stay in cache.
  template <typename Fn>
  void for_units(int num_units, int num_rows, int num_cols, Fn&& fn) const {
    const RowBlocks blocks(num_rows, num_cols);
    const int wanted = num_rows < kManyRows ? pool.num_threads() * kTasksPerThread : num_units;
    const int tasks_per_block = pool.num_threads() == 1 ? 1 : std::min(num_units, wanted);
    pool.run(tasks_per_block * blocks.num_blocks, [&](int task, int worker_idx) {
      const int row_begin = task / tasks_per_block * blocks.block_rows;
      const int block_rows = std::min(blocks.block_rows, num_rows - row_begin);
      const std::int64_t part = task % tasks_per_block;
      const auto begin = static_cast<int>(num_units * part / tasks_per_block);
      const auto end = static_cast<int>(num_units * (part + 1) / tasks_per_block);
      for (int unit = begin; unit < end; ++unit) {
        fn(unit, RowRange{row_begin, block_rows}, worker_idx);
      }
    });
  }
};

LinearDriver::LinearDriver(ThreadPool& pool, const LinearKernels& kernels, MemoryCounters& counters)
    : state_(std::make_unique<State>(pool, kernels, counters)) {}
LinearDriver::~LinearDriver() = default;

namespace {

// Rows of the panel's part of an output matrix; acc is their first sum.
FinishJob finish_job(
    const CpuWeight& weight, int panel_idx, RowRange range, const float* acc, float* out) {
  FinishJob job;
  job.acc = acc;
  job.segment_stride = kSegmentStride;
  job.num_segments = num_segments(weight);
  job.num_rows = range.count / weight.num_planes;
  if (weight.num_planes == 2) {
    HR_CHECK(job.num_segments == 1);
    job.num_segments = 2;
    job.segment_stride = kPanelCols;
    job.row_stride = std::int64_t{2} * kPanelCols;
  }
  job.num_cols = std::min(kPanelCols, weight.num_rows - panel_idx * kPanelCols);
  job.out_stride = weight.num_rows;
  job.out = out + range.begin / weight.num_planes * job.out_stride +
            static_cast<std::ptrdiff_t>(panel_idx) * kPanelCols;
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
    needs.add(cpu_weight(*output.weight));
    num_planes = cpu_weight(*output.weight).num_planes;
    num_units += cpu_weight(*output.weight).num_panels();
  }
  state_->rows.prepare(input, num_cols, needs);
  const auto run_unit = [&](int unit, RowRange range, int worker_idx) {
    const LinearOutput* output = outputs.data();
    while (unit >= cpu_weight(*output->weight).num_panels()) {
      unit -= cpu_weight(*output->weight).num_panels();
      ++output;
    }
    const CpuWeight& weight = cpu_weight(*output->weight);
    float* const acc = state_->worker(worker_idx).acc.data();
    state_->accumulate(weight, unit, range, worker_idx, acc, [&](int begin, int count) {
      FinishJob job = finish_job(weight,
                                 unit,
                                 {range.begin + begin, count},
                                 acc + std::ptrdiff_t{begin} * kPanelCols,
                                 output->out);
      const std::ptrdiff_t first_col = static_cast<std::ptrdiff_t>(unit) * kPanelCols;
      job.bias = output->bias == nullptr ? nullptr : output->bias + first_col;
      job.add_to_out = output->add_to_out;
      state_->kernels.finish(job);
    });
  };
  state_->for_units(num_units, input.num_rows * num_planes, num_cols, run_unit);
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
  needs.add(gate_weight);
  needs.add(up_weight);
  state_->rows.prepare(input, gate.num_cols, needs);
  const auto finish = activation == Activation::kSilu ? state_->kernels.finish_silu
                                                      : state_->kernels.finish_gelu_tanh;
  const auto run_unit = [&](int unit, RowRange range, int worker_idx) {
    float* const acc = state_->worker(worker_idx).acc.data();
    float* const up_acc = acc + kUpAcc;
    state_->accumulate(gate_weight, unit, range, worker_idx, acc, [](int, int) {});
    state_->accumulate(up_weight, unit, range, worker_idx, up_acc, [&](int begin, int count) {
      const std::ptrdiff_t first = std::ptrdiff_t{begin} * kPanelCols;
      FinishJob job = finish_job(gate_weight, unit, {range.begin + begin, count}, acc + first, out);
      job.up_acc = up_acc + first;
      finish(job);
    });
  };
  state_->for_units(gate_weight.num_panels(), input.num_rows, gate.num_cols, run_unit);
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
