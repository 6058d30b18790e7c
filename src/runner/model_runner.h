// The StepRunner of a real model: turns rows into the flat arrays that the backend reads, runs the
// forward pass and brings the logits to the host. Owns the batch arrays and the workspace, all
// sized once for RunnerLimits. One thread (the engine's).
#pragma once

#include <memory>
#include <vector>

#include "kv/kv_storage.h"
#include "model/model.h"
#include "runner/step_runner.h"

namespace headrace {

class ModelRunner final : public StepRunner {
 public:
  static Result<std::unique_ptr<ModelRunner>> create(std::unique_ptr<Backend> backend,
                                                     std::unique_ptr<Model> model,
                                                     std::unique_ptr<KvStorage> kv,
                                                     const RunnerLimits& limits);

  const RunnerLimits& limits() const override { return limits_; }
  int vocab_size() const override { return model_->config().vocab_size; }
  bool run(std::span<const SequenceRows> rows,
           const KvManager& kv,
           const std::atomic<bool>* abort) override;
  std::span<const float> logits(int logit_idx) const override;

  const Backend& backend() const { return *backend_; }
  const Model& model() const { return *model_; }

 private:
  // The arrays of a step in one arena of int32, the same on host and device: offsets into it.
  struct Arrays {
    std::size_t token_ids, positions, query_offsets, context_lens, logit_rows, slots, block_tables,
        size;
  };

  ModelRunner(std::unique_ptr<Backend> backend,
              std::unique_ptr<Model> model,
              std::unique_ptr<KvStorage> kv,
              const RunnerLimits& limits);
  Status allocate();
  void fill(std::span<const SequenceRows> rows, const KvManager& kv);
  void fill_group(std::span<const SequenceRows> rows, const KvManager& kv, int group_idx);
  StepLayout layout() const;

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvStorage> kv_;
  RunnerLimits limits_;
  int num_groups_ = 0;
  int max_blocks_ = 0;  // of one sequence in this step: the block tables' columns
  Arrays arrays_{};
  std::vector<std::int32_t> host_;
  Buffer device_;
  Buffer workspace_;
  Activations act_;
  std::vector<const std::int32_t*> slots_;      // per group, device
  std::vector<StepLayout::Group> group_views_;  // per group, host
  std::vector<float> logits_;                   // host, [max_logit_rows, V]
  int num_rows_ = 0;
  int num_sequences_ = 0;
  int num_logit_rows_ = 0;
};

}  // namespace headrace
