#include "kernels/naive_attention.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/naive_kernels.h"
#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

const NaiveKernels& naive_kernels(CpuTier tier) {
#if defined(__x86_64__)
  if (tier == CpuTier::kAvx2) {
    return avx2::naive_kernels();
  }
  if (tier == CpuTier::kAvx512Vnni) {
    return avx512vnni::naive_kernels();
  }
#endif
  return scalar::naive_kernels();
}

int round_up(int value, int step) { return (value + step - 1) / step * step; }

}  // namespace

struct NaiveAttention::State {
  State(CpuTier tier, int num_threads) : kernels(naive_kernels(tier)), pool(num_threads) {}

  // Of one head.
  struct Pass {
    AttentionTile tile;  // of all queries
    int num_tokens = 0;  // padded
    NaiveScope scope = NaiveScope::kAllPairs;
    float* keys = nullptr;
    float* values = nullptr;
  };

  Status grow(int num_tokens, int head_dim);
  void widen(const Pass& pass, std::span<const std::int32_t> blocks);
  double multiply(const Pass& pass);

  const NaiveKernels& kernels;
  MemoryCounters counters;
  ThreadPool pool;
  SteadyClock clock;
  Buffer scores;   // [n, n]
  Buffer kv;       // keys, then values of one head
  Buffer scratch;  // of each worker
};

Status NaiveAttention::State::grow(int num_tokens, int head_dim) {
  const auto n = static_cast<std::size_t>(num_tokens);
  const auto fit = [&](Buffer& buffer, std::size_t floats) -> Status {
    if (buffer.bytes() >= floats * sizeof(float)) {
      return {};
    }
    buffer = Buffer();
    HR_ASSIGN_OR_RETURN(buffer,
                        allocate_counted(floats * sizeof(float), MemoryPart::kWorkspace, counters));
    return {};
  };
  HR_RETURN_IF_ERROR(fit(scores, n * n));
  HR_RETURN_IF_ERROR(fit(kv, 2 * n * static_cast<std::size_t>(head_dim)));
  return fit(scratch,
             static_cast<std::size_t>(pool.num_threads()) *
                 attention_scratch_floats(kAttentionTileRows, head_dim));
}

void NaiveAttention::State::widen(const Pass& pass, std::span<const std::int32_t> blocks) {
  const std::ptrdiff_t size = std::ptrdiff_t{kBlockTokens} * pass.tile.head_dim;
  pool.run(pass.num_tokens / kBlockTokens, [&](int i, int) {
    float* keys = pass.keys + i * size;
    float* values = pass.values + i * size;
    if (i < static_cast<int>(blocks.size())) {
      kernels.widen(pass.tile, blocks[static_cast<std::size_t>(i)], keys, values);
    } else {  // padding, masked
      std::fill(keys, keys + size, 0.0F);
      std::fill(values, values + size, 0.0F);
    }
  });
}

// Seconds of the two products.
double NaiveAttention::State::multiply(const Pass& pass) {
  const int num_queries = pass.tile.num_queries;
  const std::ptrdiff_t stride = pass.num_tokens;
  const std::size_t scratch_floats =
      attention_scratch_floats(kAttentionTileRows, pass.tile.head_dim);
  const auto for_tiles = [&](auto&& body) {
    const TimePoint start = clock.now();
    pool.run(round_up(num_queries, kAttentionTileRows) / kAttentionTileRows,
             [&](int task, int worker) {
               const int first = task * kAttentionTileRows;
               AttentionTile tile = pass.tile;
               tile.num_queries = std::min(kAttentionTileRows, num_queries - first);
               tile.first_position = first;
               tile.q += first * tile.row_stride;
               tile.out += first * tile.row_stride;
               const int seen = round_up(first + tile.num_queries, kAttentionStep);
               body(tile,
                    pass.scope == NaiveScope::kAllPairs ? pass.num_tokens : seen,
                    scores.as<float>() + first * stride,
                    scratch.as<float>() + scratch_floats * static_cast<std::size_t>(worker));
             });
    return to_seconds(clock.now() - start);
  };
  double seconds =
      for_tiles([&](const AttentionTile& tile, int num_tokens, float* at, float* memory) {
        kernels.scores(tile, pass.keys, num_tokens, at, stride, memory);
      });
  for_tiles([&](const AttentionTile& tile, int num_tokens, float* at, float*) {
    kernels.softmax(tile, num_tokens, at, stride);
  });
  seconds += for_tiles([&](const AttentionTile& tile, int num_tokens, float* at, float* memory) {
    kernels.values(tile, pass.values, num_tokens, at, stride, memory);
  });
  return seconds;
}

Result<std::unique_ptr<NaiveAttention>> NaiveAttention::create(std::string_view tier,
                                                               int num_threads) {
  HR_ASSIGN_OR_RETURN(const CpuTier chosen, choose_tier(tier));
  return std::unique_ptr<NaiveAttention>(
      new NaiveAttention(std::make_unique<State>(chosen, num_threads)));
}

NaiveAttention::NaiveAttention(std::unique_ptr<State> state) : state_(std::move(state)) {}
NaiveAttention::~NaiveAttention() = default;

Result<double> NaiveAttention::run(const AttentionArgs& args,
                                   std::span<const std::int32_t> blocks,
                                   int num_tokens,
                                   NaiveScope scope) {
  const int dim = args.kv.head_dim;
  HR_CHECK(args.num_heads % args.kv.num_kv_heads == 0 && dim % 16 == 0 && num_tokens > 0);
  HR_CHECK(static_cast<int>(blocks.size()) * kBlockTokens >= num_tokens);
  State::Pass pass;
  pass.num_tokens = round_up(num_tokens, kAttentionStep);
  pass.scope = scope;
  HR_RETURN_IF_ERROR(state_->grow(pass.num_tokens, dim));
  pass.keys = state_->kv.as<float>();
  pass.values = pass.keys + std::ptrdiff_t{pass.num_tokens} * dim;
  const int group = args.num_heads / args.kv.num_kv_heads;
  const std::int64_t value_bytes = args.kv.type == KvType::kF16 ? 2 : 4;
  double seconds = 0;
  for (int head = 0; head < args.num_heads; ++head) {
    AttentionTile& tile = pass.tile;
    tile.q = args.q + std::ptrdiff_t{head} * dim;
    tile.out = args.out + std::ptrdiff_t{head} * dim;
    tile.row_stride = std::int64_t{args.num_heads} * dim;
    tile.num_queries = num_tokens;
    tile.head_dim = dim;
    tile.scale = args.scale;
    tile.kv = args.kv.base + std::int64_t{head / group} * 2 * dim * kBlockTokens * value_bytes;
    tile.block_stride = args.kv.block_stride;
    tile.type = args.kv.type;
    if (head % group == 0) {
      state_->widen(pass,
                    blocks.first(static_cast<std::size_t>(round_up(num_tokens, kBlockTokens) /
                                                          kBlockTokens)));
    }
    seconds += state_->multiply(pass);
  }
  return seconds;
}

}  // namespace headrace
