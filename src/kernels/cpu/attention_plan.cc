#include "kernels/cpu/attention_plan.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

namespace headrace {
namespace {

constexpr int kTasksPerThread = 4;
// Parts of split contexts take at most 64 MiB; beyond, nothing more is split.
constexpr std::size_t kMostStateFloats = std::size_t{1} << 24;
// Multiply-adds that are done before a worker wakes up.
constexpr std::int64_t kSmallWork = std::int64_t{1} << 16;

}  // namespace

void AttentionPlan::build(const StepLayout& layout) {
  num_schedules_ = 0;
  const auto num_sequences = static_cast<std::size_t>(layout.num_sequences);
  sequences_.resize(num_sequences);
  for (std::size_t s = 0; s < num_sequences; ++s) {
    Sequence& sequence = sequences_[s];
    sequence.first_row = layout.query_offsets[s];
    sequence.num_queries = layout.query_offsets[s + 1] - sequence.first_row;
    sequence.first_position = layout.context_lens[s] - sequence.num_queries;
    HR_CHECK(sequence.num_queries >= 0 && sequence.first_position >= 0);
  }
  groups_.resize(layout.groups.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const StepLayout::Group& from = layout.groups[g];
    groups_[g].window = from.window;
    groups_[g].max_blocks = from.max_blocks;
    groups_[g].block_tables.assign(from.block_tables.begin(), from.block_tables.end());
    HR_CHECK(groups_[g].block_tables.size() >=
             num_sequences * static_cast<std::size_t>(from.max_blocks));
  }
}

AttentionPlan::Schedule& AttentionPlan::schedule_for(const Heads& heads, int num_threads) {
  for (std::size_t i = 0; i < num_schedules_; ++i) {
    if (schedules_[i].heads == heads) {
      return schedules_[i];
    }
  }
  if (num_schedules_ == schedules_.size()) {
    schedules_.emplace_back();
  }
  Schedule& schedule = schedules_[num_schedules_++];
  schedule.heads = heads;
  fill(schedule, num_threads);
  return schedule;
}

std::int64_t AttentionPlan::unit_work(const Schedule& schedule,
                                      const Unit& unit,
                                      int begin,
                                      int end) const {
  const Sequence& sequence = sequences_[static_cast<std::size_t>(unit.sequence)];
  const int window = groups_[static_cast<std::size_t>(schedule.heads.group_idx)].window;
  const int first = sequence.first_position + unit.first_query;
  const int lo = window > 0 ? std::max(0, first - window + 1) : 0;
  const int hi = first + unit.num_queries;
  const int tokens = std::min(hi, end * kPartitionTokens) - std::max(lo, begin * kPartitionTokens);
  const int group = schedule.heads.num_heads / schedule.heads.num_kv_heads;
  return static_cast<std::int64_t>(tokens) * unit.num_queries * group;
}

void AttentionPlan::fill(Schedule& schedule, int num_threads) const {
  const Heads& heads = schedule.heads;
  const int group = heads.num_heads / heads.num_kv_heads;
  const int tile_queries = std::max(1, kAttentionTileRows / group);
  const int window = groups_[static_cast<std::size_t>(heads.group_idx)].window;
  schedule.units.clear();
  schedule.tasks.clear();
  schedule.state_floats = 0;
  schedule.work = 0;
  int most_queries = 0;
  for (int s = 0; s < static_cast<int>(sequences_.size()); ++s) {
    const Sequence& sequence = sequences_[static_cast<std::size_t>(s)];
    for (int query = 0; query < sequence.num_queries; query += tile_queries) {
      Unit unit;
      unit.sequence = s;
      unit.first_query = query;
      unit.num_queries = std::min(tile_queries, sequence.num_queries - query);
      const int first = sequence.first_position + query;
      unit.begin = (window > 0 ? std::max(0, first - window + 1) : 0) / kPartitionTokens;
      unit.end = (first + unit.num_queries + kPartitionTokens - 1) / kPartitionTokens;
      unit.state_floats = attention_state_floats(unit.num_queries * group, heads.head_dim);
      most_queries = std::max(most_queries, unit.num_queries);
      for (unit.kv_head = 0; unit.kv_head < heads.num_kv_heads; ++unit.kv_head) {
        schedule.units.push_back(unit);
        schedule.work += unit_work(schedule, unit, unit.begin, unit.end);
      }
    }
  }
  schedule.worker_floats = attention_scratch_floats(most_queries * group, heads.head_dim);
  schedule.worker_floats = (schedule.worker_floats + 15) / 16 * 16;
  const std::int64_t most_work =
      num_threads == 1 ? schedule.work
                       : schedule.work / (std::int64_t{num_threads} * kTasksPerThread);
  for (int i = 0; i < static_cast<int>(schedule.units.size()); ++i) {
    add_tasks(schedule, i, most_work);
  }
  // Longest first, so that the last ones fill the gaps.
  std::stable_sort(schedule.tasks.begin(), schedule.tasks.end(), [](const Task& a, const Task& b) {
    return a.work > b.work;
  });
}

void AttentionPlan::add_tasks(Schedule& schedule, int unit_idx, std::int64_t most_work) const {
  Unit& unit = schedule.units[static_cast<std::size_t>(unit_idx)];
  const int num_partitions = unit.end - unit.begin;
  const std::int64_t work = unit_work(schedule, unit, unit.begin, unit.end);
  const std::size_t states = unit.state_floats * static_cast<std::size_t>(num_partitions);
  int parts = 1;
  if (work > most_work && schedule.state_floats + states <= kMostStateFloats) {
    const std::int64_t wanted = (work + most_work - 1) / std::max<std::int64_t>(1, most_work);
    parts =
        static_cast<int>(std::min<std::int64_t>(num_partitions, std::max<std::int64_t>(1, wanted)));
  }
  if (parts > 1) {
    unit.first_state = schedule.state_floats;
    schedule.state_floats += states;
  }
  unit.num_tasks = parts;
  for (int i = 0; i < parts; ++i) {
    Task task;
    task.unit = unit_idx;
    task.begin = unit.begin + num_partitions * i / parts;
    task.end = unit.begin + num_partitions * (i + 1) / parts;
    task.work = unit_work(schedule, unit, task.begin, task.end);
    schedule.tasks.push_back(task);
  }
}

AttentionTile AttentionPlan::tile_of(const AttentionArgs& args, const Unit& unit) const {
  const Sequence& sequence = sequences_[static_cast<std::size_t>(unit.sequence)];
  const Group& group = groups_[static_cast<std::size_t>(args.group_idx)];
  const int dim = args.kv.head_dim;
  AttentionTile tile;
  tile.group = args.num_heads / args.kv.num_kv_heads;
  tile.row_stride = static_cast<std::int64_t>(args.num_heads) * dim;
  const std::int64_t first = (sequence.first_row + unit.first_query) * tile.row_stride +
                             static_cast<std::int64_t>(unit.kv_head) * tile.group * dim;
  tile.q = args.q + first;
  tile.out = args.out + first;
  tile.num_queries = unit.num_queries;
  tile.head_dim = dim;
  tile.first_position = sequence.first_position + unit.first_query;
  tile.window = group.window;
  tile.scale = args.scale;
  tile.blocks =
      group.block_tables.data() + static_cast<std::int64_t>(unit.sequence) * group.max_blocks;
  const std::int64_t value_bytes = args.kv.type == KvType::kF16 ? 2 : 4;
  tile.kv =
      args.kv.base + static_cast<std::int64_t>(unit.kv_head) * 2 * dim * kBlockTokens * value_bytes;
  tile.block_stride = args.kv.block_stride;
  tile.type = args.kv.type;
  return tile;
}

void AttentionPlan::run(const AttentionArgs& args,
                        const RowKernels& kernels,
                        ThreadPool& pool,
                        AttentionScratch& scratch) {
  HR_CHECK(args.num_heads % args.kv.num_kv_heads == 0 && args.kv.head_dim % 16 == 0);
  HR_CHECK(args.group_idx >= 0 && static_cast<std::size_t>(args.group_idx) < groups_.size());
  const Heads heads{args.group_idx, args.num_heads, args.kv.num_kv_heads, args.kv.head_dim};
  Schedule& schedule = schedule_for(heads, pool.num_threads());
  float* states = scratch.states(schedule.state_floats);
  float* memory =
      scratch.workers(schedule.worker_floats * static_cast<std::size_t>(pool.num_threads()));
  const auto run_task = [&](int task_idx, int worker) {
    const Task& task = schedule.tasks[static_cast<std::size_t>(task_idx)];
    Unit& unit = schedule.units[static_cast<std::size_t>(task.unit)];
    const AttentionTile tile = tile_of(args, unit);
    float* own = memory + schedule.worker_floats * static_cast<std::size_t>(worker);
    if (unit.num_tasks == 1) {
      kernels.attend(tile, task.begin, task.end, own);
      return;
    }
    float* first = states + unit.first_state;
    kernels.attend_partitions(
        tile,
        task.begin,
        task.end,
        first + unit.state_floats * static_cast<std::size_t>(task.begin - unit.begin),
        own);
    const std::atomic_ref<int> num_done(unit.num_done);
    if (num_done.fetch_add(1, std::memory_order_acq_rel) + 1 == unit.num_tasks) {
      num_done.store(0, std::memory_order_relaxed);
      kernels.finish(tile, first, unit.end - unit.begin);
    }
  };
  const int num_tasks = static_cast<int>(schedule.tasks.size());
  if (schedule.work * args.kv.head_dim * 2 <= kSmallWork) {
    for (int i = 0; i < num_tasks; ++i) {
      run_task(i, 0);
    }
  } else {
    pool.run(num_tasks, run_task);
  }
}

}  // namespace headrace
