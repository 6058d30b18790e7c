// Flash attention against the naive form, over prompts of growing length: time, bytes moved by the
// counted model, scratch as the peak of resident memory shows it, and the largest difference beside
// its derived bound. Both read the same cache with the same tiles on the same threads. One thread;
// Linux.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"

namespace headrace {

struct AttentionSpeedOptions {
  std::vector<int> lengths = {512, 1024, 2048, 4096, 8192, 16384, 32768};
  int num_heads = 2;
  int num_kv_heads = 2;
  int head_dim = 64;
  KvType kv = KvType::kF16;
  int num_threads = 1;
  int repeat = 3;
  std::string tier;  // empty: the best
};

Status check_options(const AttentionSpeedOptions& options);

// Naive: all pairs are scored, then masked. Naive causal: what the mask hides as a whole is left
// out there too, as the flash form leaves it out.
struct AttentionRow {
  int n = 0;
  double naive_s = 0;
  double naive_causal_s = 0;
  double flash_s = 0;
  std::uint64_t naive_bytes = 0;
  std::uint64_t naive_causal_bytes = 0;
  std::uint64_t flash_bytes = 0;
  std::size_t naive_scratch_bytes = 0;
  std::size_t flash_scratch_bytes = 0;
  double max_abs_diff = 0;
  double bound = 0;
  double naive_product_share = 0;  // of the float peak: the naive form's two products alone
};

struct AttentionSpeed {
  std::string isa;
  int num_threads = 0;
  std::size_t l2_bytes = 0;  // measured
  double f32_flop_per_s = 0;
  std::vector<AttentionRow> rows;
};

// `progress` hears a line for a person. Fails where a difference exceeds its bound.
Result<AttentionSpeed> measure_attention(const AttentionSpeedOptions& options,
                                         const std::function<void(const std::string&)>& progress);

}  // namespace headrace
