#include "support/fake_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace::testing {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 31);
}

}  // namespace

void hashed_logits(std::span<const TokenId> prefix, std::span<float> logits) {
  std::uint64_t hash = 1;
  for (const TokenId token : prefix) {
    hash = mix(hash, static_cast<std::uint64_t>(token));
  }
  for (std::size_t v = 0; v < logits.size(); ++v) {
    logits[v] = static_cast<float>(mix(hash, v) >> 40) * 0x1p-21F;  // [0, 8)
  }
}

FakeRunner::FakeRunner(Options options) : options_(std::move(options)) {
  HR_CHECK(options_.groups[0].window == 0);
  if (!options_.logits) {
    options_.logits = hashed_logits;
  }
}

bool FakeRunner::run(std::span<const SequenceRows> rows,
                     const KvManager& kv,
                     const std::atomic<bool>* abort) {
  slots_.resize((static_cast<std::size_t>(kv.num_blocks()) + 1) *
                static_cast<std::size_t>(kv.tokens_per_block()));
  logits_.clear();
  if (options_.hook) {
    options_.hook(rows);
  }
  int num_rows = 0;
  int num_logits = 0;
  for (const SequenceRows& sequence : rows) {
    num_rows += static_cast<int>(sequence.tokens.size());
    num_logits += sequence.num_logits;
  }
  HR_CHECK(static_cast<int>(rows.size()) <= options_.limits.max_sequences);
  HR_CHECK(num_rows <= options_.limits.max_rows && num_logits <= options_.limits.max_logit_rows);
  if (abort != nullptr && abort->load()) {
    return false;
  }
  for (const SequenceRows& sequence : rows) {
    run_rows(sequence, kv);
  }
  return true;
}

void FakeRunner::run_rows(const SequenceRows& rows, const KvManager& kv) {
  const int num_rows = static_cast<int>(rows.tokens.size());
  HR_CHECK(num_rows >= 1 && rows.num_logits >= 0 && rows.num_logits <= num_rows);
  HR_CHECK(rows.num_computed + num_rows <= options_.limits.max_context);
  if (rows.table == kNoTable) {
    HR_CHECK(rows.num_logits == 0);
    return;
  }
  for (int i = 0; i < num_rows; ++i) {
    append(rows, kv, rows.num_computed + i, rows.tokens[static_cast<std::size_t>(i)]);
  }
  // As attention does: a chunk's keys are all written before its first query reads.
  for (int i = 0; i < num_rows; ++i) {
    for (int group = 0; group < kv.num_groups(); ++group) {
      check_visible(rows, kv, group, rows.num_computed + i);
    }
    if (i >= num_rows - rows.num_logits) {
      add_logits(rows, kv, rows.num_computed + i);
    }
  }
}

std::size_t FakeRunner::slot_idx(const SequenceRows& rows,
                                 const KvManager& kv,
                                 int group,
                                 int position) const {
  const int size = kv.tokens_per_block();
  const std::span<const BlockId> blocks = kv.blocks(rows.table, group);
  HR_CHECK(position / size < static_cast<int>(blocks.size()));
  const int block = blocks[static_cast<std::size_t>(position / size)].value;
  HR_CHECK(block >= 1 && block <= kv.num_blocks());
  return static_cast<std::size_t>(block) * static_cast<std::size_t>(size) +
         static_cast<std::size_t>(position % size);
}

const FakeRunner::Slot& FakeRunner::slot(const SequenceRows& rows,
                                         const KvManager& kv,
                                         int group,
                                         int position) const {
  return slots_[slot_idx(rows, kv, group, position)];
}

void FakeRunner::append(const SequenceRows& rows,
                        const KvManager& kv,
                        int position,
                        TokenId token) {
  HR_CHECK(token >= 0 && token < options_.vocab_size);
  const std::uint64_t before = position == 0 ? 1 : slot(rows, kv, 0, position - 1).prefix_hash;
  for (int group = 0; group < kv.num_groups(); ++group) {
    slots_[slot_idx(rows, kv, group, position)] = {
        token, position, mix(before, static_cast<std::uint64_t>(token))};
  }
}

void FakeRunner::check_visible(const SequenceRows& rows,
                               const KvManager& kv,
                               int group,
                               int position) const {
  const int window = options_.groups[static_cast<std::size_t>(group)].window;
  const int first = window == 0 ? 0 : std::max(0, position - window + 1);
  for (int p = first; p <= position; ++p) {
    const Slot& seen = slot(rows, kv, group, p);
    HR_CHECK(seen.position == p);
    if (p > first) {
      const Slot& before = slot(rows, kv, group, p - 1);
      HR_CHECK(seen.prefix_hash == mix(before.prefix_hash, static_cast<std::uint64_t>(seen.token)));
    }
  }
  HR_CHECK(slot(rows, kv, group, position).prefix_hash == slot(rows, kv, 0, position).prefix_hash);
}

void FakeRunner::add_logits(const SequenceRows& rows, const KvManager& kv, int position) {
  std::vector<TokenId> prefix;
  for (int p = 0; p <= position; ++p) {
    prefix.push_back(slot(rows, kv, 0, p).token);
  }
  const std::size_t at = logits_.size();
  const auto vocab_size = static_cast<std::size_t>(options_.vocab_size);
  logits_.resize(at + vocab_size);
  options_.logits(prefix, std::span(logits_).subspan(at, vocab_size));
}

std::span<const float> FakeRunner::logits(int logit_idx) const {
  const auto vocab_size = static_cast<std::size_t>(options_.vocab_size);
  const std::size_t at = static_cast<std::size_t>(logit_idx) * vocab_size;
  HR_CHECK(at + vocab_size <= logits_.size());
  return std::span(logits_).subspan(at, vocab_size);
}

}  // namespace headrace::testing
