#include "runner/model_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace {
namespace {

int blocks_for(int num_tokens) { return (num_tokens + kBlockTokens - 1) / kBlockTokens; }

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(std::unique_ptr<Backend> backend,
                                                         std::unique_ptr<Model> model,
                                                         std::unique_ptr<KvStorage> kv,
                                                         const RunnerLimits& limits) {
  std::unique_ptr<ModelRunner> runner(
      new ModelRunner(std::move(backend), std::move(model), std::move(kv), limits));
  HR_RETURN_IF_ERROR(runner->allocate());
  return runner;
}

ModelRunner::ModelRunner(std::unique_ptr<Backend> backend,
                         std::unique_ptr<Model> model,
                         std::unique_ptr<KvStorage> kv,
                         const RunnerLimits& limits)
    : backend_(std::move(backend)), model_(std::move(model)), kv_(std::move(kv)), limits_(limits) {}

Status ModelRunner::allocate() {
  num_groups_ = static_cast<int>(kv_->layout().groups.size());
  const auto rows = static_cast<std::size_t>(limits_.max_rows);
  const auto sequences = static_cast<std::size_t>(limits_.max_sequences);
  const auto groups = static_cast<std::size_t>(num_groups_);
  const auto take = [this](std::size_t n) {
    return std::exchange(arrays_.size, arrays_.size + (n + 15) / 16 * 16);
  };
  arrays_.token_ids = take(rows);
  arrays_.positions = take(rows);
  arrays_.query_offsets = take(sequences + 1);
  arrays_.context_lens = take(sequences);
  arrays_.logit_rows = take(static_cast<std::size_t>(limits_.max_logit_rows));
  arrays_.slots = take(groups * rows);
  arrays_.block_tables =
      take(groups * sequences * static_cast<std::size_t>(blocks_for(limits_.max_context)));
  host_.resize(arrays_.size);
  HR_ASSIGN_OR_RETURN(device_,
                      backend_->alloc(arrays_.size * sizeof(std::int32_t), MemoryPart::kWorkspace));

  const ActivationPlan plan =
      plan_activations(model_->config(), limits_.max_rows, limits_.max_logit_rows);
  HR_ASSIGN_OR_RETURN(workspace_,
                      backend_->alloc(plan.num_floats * sizeof(float), MemoryPart::kWorkspace));
  act_ = plan.at(workspace_.as<float>());
  logits_.resize(static_cast<std::size_t>(limits_.max_logit_rows) *
                 static_cast<std::size_t>(vocab_size()));

  slots_.resize(groups);
  group_views_.resize(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    slots_[g] = device_.as<std::int32_t>() + arrays_.slots + g * rows;
  }
  return {};
}

void ModelRunner::fill(std::span<const SequenceRows> rows, const KvManager& kv) {
  num_sequences_ = static_cast<int>(rows.size());
  num_rows_ = 0;
  num_logit_rows_ = 0;
  max_blocks_ = 0;
  HR_CHECK(num_sequences_ <= limits_.max_sequences);
  std::int32_t* const token_ids = host_.data() + arrays_.token_ids;
  std::int32_t* const positions = host_.data() + arrays_.positions;
  std::int32_t* const logit_rows = host_.data() + arrays_.logit_rows;
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const auto n = static_cast<int>(rows[s].tokens.size());
    HR_CHECK(n > 0 && num_rows_ + n <= limits_.max_rows &&
             rows[s].num_computed + n <= limits_.max_context);
    HR_CHECK(rows[s].num_logits <= (rows[s].table == kNoTable ? 0 : n) &&
             num_logit_rows_ + rows[s].num_logits <= limits_.max_logit_rows);
    host_[arrays_.query_offsets + s] = num_rows_;
    host_[arrays_.context_lens + s] = rows[s].num_computed + n;
    for (int i = 0; i < n; ++i) {
      token_ids[num_rows_ + i] = rows[s].tokens[static_cast<std::size_t>(i)];
      positions[num_rows_ + i] = rows[s].num_computed + i;
    }
    num_rows_ += n;
    max_blocks_ = std::max(max_blocks_, blocks_for(rows[s].num_computed + n));
    for (int i = rows[s].num_logits; i > 0; --i) {
      logit_rows[num_logit_rows_++] = num_rows_ - i;
    }
  }
  host_[arrays_.query_offsets + rows.size()] = num_rows_;
  for (int g = 0; g < num_groups_; ++g) {
    fill_group(rows, kv, g);
  }
}

void ModelRunner::fill_group(std::span<const SequenceRows> rows,
                             const KvManager& kv,
                             int group_idx) {
  const auto g = static_cast<std::size_t>(group_idx);
  const auto max_blocks = static_cast<std::size_t>(max_blocks_);
  std::int32_t* const slots =
      host_.data() + arrays_.slots + g * static_cast<std::size_t>(limits_.max_rows);
  std::int32_t* const tables = host_.data() + arrays_.block_tables + g * rows.size() * max_blocks;
  std::size_t row = 0;
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const bool padding = rows[s].table == kNoTable;
    const std::span<const BlockId> held =
        padding ? std::span<const BlockId>{} : kv.blocks(rows[s].table, group_idx);
    const std::span<const BlockId> blocks = held.first(std::min(held.size(), max_blocks));
    std::int32_t* const table = tables + s * max_blocks;
    std::transform(blocks.begin(), blocks.end(), table, [](BlockId id) { return id.value; });
    std::fill(table + blocks.size(), table + max_blocks, 0);
    const int end = rows[s].num_computed + static_cast<int>(rows[s].tokens.size());
    for (int position = rows[s].num_computed; position < end; ++position) {
      const std::int32_t block = table[position / kBlockTokens];
      HR_CHECK(block != 0 || padding);
      slots[row++] = block * kBlockTokens + position % kBlockTokens;
    }
  }
  group_views_[g] = {.window = kv_->layout().groups[g].window,
                     .max_blocks = max_blocks_,
                     .block_tables = {tables, rows.size() * max_blocks},
                     .slots = {slots, row}};
}

StepLayout ModelRunner::layout() const {
  const auto at = [this](std::size_t offset, int n) {
    return std::span<const std::int32_t>(host_.data() + offset, static_cast<std::size_t>(n));
  };
  return {.num_rows = num_rows_,
          .num_sequences = num_sequences_,
          .positions = at(arrays_.positions, num_rows_),
          .query_offsets = at(arrays_.query_offsets, num_sequences_ + 1),
          .context_lens = at(arrays_.context_lens, num_sequences_),
          .groups = group_views_};
}

bool ModelRunner::run(std::span<const SequenceRows> rows,
                      const KvManager& kv,
                      const std::atomic<bool>* abort) {
  fill(rows, kv);
  const auto table_size =
      static_cast<std::size_t>(num_groups_) * rows.size() * static_cast<std::size_t>(max_blocks_);
  backend_->upload(device_.as<std::int32_t>(),
                   host_.data(),
                   (arrays_.block_tables + table_size) * sizeof(std::int32_t));
  backend_->plan_attention(layout());
  const std::int32_t* const device = device_.as<std::int32_t>();
  const bool done = model_->forward({.backend = *backend_,
                                     .kv = *kv_,
                                     .act = act_,
                                     .token_ids = device + arrays_.token_ids,
                                     .positions = device + arrays_.positions,
                                     .slots = slots_.data(),
                                     .logit_rows = device + arrays_.logit_rows,
                                     .num_rows = num_rows_,
                                     .num_logit_rows = num_logit_rows_,
                                     .abort = abort});
  if (done && num_logit_rows_ > 0) {
    const std::size_t n =
        static_cast<std::size_t>(num_logit_rows_) * static_cast<std::size_t>(vocab_size());
    backend_->download(logits_.data(), act_.logits, n * sizeof(float));
  }
  backend_->synchronize();
  return done;
}

std::span<const float> ModelRunner::logits(int logit_idx) const {
  HR_CHECK(logit_idx >= 0 && logit_idx < num_logit_rows_);
  const auto vocab = static_cast<std::size_t>(vocab_size());
  return {logits_.data() + static_cast<std::size_t>(logit_idx) * vocab, vocab};
}

}  // namespace headrace
