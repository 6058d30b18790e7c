// Who computes which part of a step's attention. build() copies the step's shape once; run() is
// called per layer and makes, at the first layer of each shape of heads, the list of tasks that the
// later ones reuse. A task is a tile of query rows of one sequence and KV head over some partitions
// of its context: long contexts are split over threads, the parts then folded in order by whichever
// worker ends last. What is split changes no bit of the result. One thread (the backend's caller)
// uses a plan; it runs the pool inside run(). Memory only grows, counted as workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/linear_rows.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/memory.h"

namespace headrace {

// What tasks need while they run; shared by all plans of a backend.
class AttentionScratch {
 public:
  explicit AttentionScratch(MemoryCounters& counters) : counters_(counters) {}

  float* workers(std::size_t floats) { return workers_.get<float>(floats, counters_); }
  float* states(std::size_t floats) { return states_.get<float>(floats, counters_); }

 private:
  MemoryCounters& counters_;
  GrowingBuffer workers_;
  GrowingBuffer states_;
};

class AttentionPlan {
 public:
  void build(const StepLayout& layout);
  void run(const AttentionArgs& args,
           const RowKernels& kernels,
           ThreadPool& pool,
           AttentionScratch& scratch);

 private:
  struct Sequence {
    int first_row = 0;
    int num_queries = 0;
    int first_position = 0;
  };
  struct Group {
    int window = 0;
    int max_blocks = 0;
    std::vector<std::int32_t> block_tables;  // [S, max_blocks]
  };
  struct Heads {
    int group_idx = 0;
    int num_heads = 0;
    int num_kv_heads = 0;
    int head_dim = 0;
    bool operator==(const Heads&) const = default;
  };
  struct Unit {
    int sequence = 0;
    int kv_head = 0;
    int first_query = 0;
    int num_queries = 0;
    int begin = 0;  // partitions
    int end = 0;
    std::size_t first_state = 0;  // float index, where split
    std::size_t state_floats = 0;
    int num_tasks = 0;
    int num_done = 0;  // of this layer; atomic access only, 0 between layers
  };
  struct Task {
    int unit = 0;
    int begin = 0;
    int end = 0;
    std::int64_t work = 0;  // scores
  };
  struct Schedule {
    Heads heads;
    std::vector<Unit> units;
    std::vector<Task> tasks;
    std::size_t state_floats = 0;
    std::size_t worker_floats = 0;
    std::int64_t work = 0;
  };

  Schedule& schedule_for(const Heads& heads, int num_threads);
  void fill(Schedule& schedule, int num_threads) const;
  void add_tasks(Schedule& schedule, int unit_idx, std::int64_t most_work) const;
  std::int64_t unit_work(const Schedule& schedule, const Unit& unit, int begin, int end) const;
  AttentionTile tile_of(const AttentionArgs& args, const Unit& unit) const;

  std::vector<Sequence> sequences_;
  std::vector<Group> groups_;
  std::vector<Schedule> schedules_;  // the first num_schedules_ belong to this step
  std::size_t num_schedules_ = 0;
};

}  // namespace headrace
