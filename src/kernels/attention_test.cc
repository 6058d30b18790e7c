// Attention over paged KV: against float64, and bitwise the same however a step is cut.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/tier.h"
#include "tensor/half.h"

namespace headrace {
namespace {

constexpr double kRounding = 0x1p-24;

struct Shape {
  int num_heads = 1;
  int num_kv_heads = 1;
  int head_dim = 16;
  KvType type = KvType::kF32;
  int window = 0;
  float q_gain = 1;
  float k_gain = 1;
};

enum class What : std::uint32_t { kQuery = 1, kKey = 2, kValue = 3 };

// In [-1, 1), a function of its arguments alone.
float value_at(What what, int sequence, int position, int idx) {
  std::uint64_t x = static_cast<std::uint64_t>(what) * 0x9e3779b97f4a7c15U;
  for (const int part : {sequence, position, idx}) {
    x = (x ^ static_cast<std::uint64_t>(part)) * 0xbf58476d1ce4e5b9U;
    x ^= x >> 29;
  }
  return static_cast<float>(static_cast<double>(x >> 40) * 0x1p-23 - 1.0);
}

float gain_of(What what, const Shape& shape) {
  return what == What::kQuery ? shape.q_gain : (what == What::kKey ? shape.k_gain : 1.0F);
}

std::vector<float> rows_of(What what, const Shape& shape, int sequence, int position, int count) {
  const int width = (what == What::kQuery ? shape.num_heads : shape.num_kv_heads) * shape.head_dim;
  std::vector<float> out;
  for (int i = 0; i < count; ++i) {
    for (int idx = 0; idx < width; ++idx) {
      out.push_back(value_at(what, sequence, position + i, idx) * gain_of(what, shape));
    }
  }
  return out;
}

float scale_of(const Shape& shape) { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }

float stored(float x, KvType type) { return type == KvType::kF16 ? f16_to_f32(f32_to_f16(x)) : x; }

struct Expected {
  std::vector<double> out;  // [num_heads * D]
  double tolerance = 0;
};

// One token's attention in float64 over the keys and values as the cache holds them.
Expected reference(const Shape& shape, int sequence, int position) {
  const int dim = shape.head_dim;
  const int group = shape.num_heads / shape.num_kv_heads;
  const int first = shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
  const int count = position + 1 - first;
  const std::vector<float> q = rows_of(What::kQuery, shape, sequence, position, 1);
  const std::vector<float> k = rows_of(What::kKey, shape, sequence, first, count);
  const std::vector<float> v = rows_of(What::kValue, shape, sequence, first, count);
  const int width = shape.num_kv_heads * dim;
  Expected expected;
  double most_products = 0;
  for (int head = 0; head < shape.num_heads; ++head) {
    std::vector<double> scores;
    for (int t = 0; t < count; ++t) {
      double sum = 0;
      double products = 0;
      for (int d = 0; d < dim; ++d) {
        const double product = static_cast<double>(q[head * dim + d]) *
                               stored(k[t * width + head / group * dim + d], shape.type);
        sum += product;
        products += std::abs(product);
      }
      scores.push_back(sum * scale_of(shape));
      most_products = std::max(most_products, products * scale_of(shape));
    }
    const double best = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& score : scores) {
      score = std::exp(score - best);
      total += score;
    }
    for (int d = 0; d < dim; ++d) {
      double sum = 0;
      for (int t = 0; t < count; ++t) {
        sum += scores[t] * stored(v[t * width + head / group * dim + d], shape.type);
      }
      expected.out.push_back(sum / total);
    }
  }
  // A score is off by at most D + 4 roundings of its products, a weight by that twice (the
  // maximum's too) and a few roundings of the exponential; a sum over the context adds a rounding a
  // token. Values are within 1.
  expected.tolerance = kRounding * (2 * (dim + 4) * most_products + 2.0 * count + 64);
  return expected;
}

// Rows of one sequence in a step.
struct Part {
  int sequence = 0;
  int first = 0;
  int count = 0;
};

// A cache that starts as NaN everywhere, block 0 too, and hands out block ids in any order.
class Bench {
 public:
  Bench(const Shape& shape,
        CpuTier tier,
        int num_threads = 1,
        StreamMode stream = StreamMode::kEager,
        int block_seed = 1)
      : shape_(shape) {
    auto made = make_cpu_backend({num_threads, tier_name(tier), stream});
    HR_CHECK(made.ok());
    backend_ = std::move(made).value();
    kv_.type = shape.type;
    kv_.num_kv_heads = shape.num_kv_heads;
    kv_.head_dim = shape.head_dim;
    kv_.block_stride = static_cast<std::int64_t>(
        backend_->kv_block_bytes(shape.type, shape.num_kv_heads, shape.head_dim) + 64);
    auto memory =
        backend_->alloc(static_cast<std::size_t>(kv_.block_stride) * kNumBlocks, MemoryPart::kKv);
    HR_CHECK(memory.ok());
    memory_ = std::move(memory).value();
    std::memset(memory_.as<>(), 0xff, memory_.bytes());
    kv_.base = memory_.as<>();
    free_.resize(kNumBlocks - 1);
    std::iota(free_.begin(), free_.end(), 1);
    for (std::size_t i = free_.size() - 1; i > 0 && block_seed != 0; --i) {
      const auto mix = static_cast<std::size_t>(
          (value_at(What::kQuery, block_seed, static_cast<int>(i), 0) + 1) * 0.5F *
          static_cast<float>(i));
      std::swap(free_[i], free_[mix]);
    }
  }

  Backend& backend() { return *backend_; }

  // Writes keys and values of positions up to `end`, those that are not there yet.
  void append(int sequence, int end) {
    grow(sequence, end);
    const int begin = num_written_[sequence];
    if (begin >= end) {
      return;
    }
    num_written_[sequence] = end;
    std::vector<float> q = rows_of(What::kQuery, shape_, sequence, begin, end - begin);
    std::vector<float> k = rows_of(What::kKey, shape_, sequence, begin, end - begin);
    std::vector<float> v = rows_of(What::kValue, shape_, sequence, begin, end - begin);
    std::vector<std::int32_t> slots;
    for (int position = begin; position < end; ++position) {
      slots.push_back(tables_[sequence][position / kBlockTokens] * kBlockTokens +
                      position % kBlockTokens);
    }
    RopeAppendArgs args;
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.num_rows = end - begin;
    args.num_heads = shape_.num_heads;
    args.cos_sin = q.data();  // nothing is rotated
    args.slots = slots.data();
    args.kv = kv_;
    backend_->rope_append(args);
    backend_->synchronize();
  }

  // Appends what the parts need, plans, and runs them as one step, `num_layers` times.
  std::vector<float> attend(const std::vector<Part>& parts, int num_layers = 1) {
    start(parts);
    for (int i = 0; i < num_layers; ++i) {
      enqueue();
    }
    backend_->synchronize();
    return out_;
  }

  void start(const std::vector<Part>& parts) {
    for (const Part& part : parts) {
      append(part.sequence, part.first + part.count);
    }
    plan(parts);
  }

  void enqueue() {
    AttentionArgs args;
    args.q = q_.data();
    args.out = out_.data();
    args.num_heads = shape_.num_heads;
    args.scale = scale_of(shape_);
    args.kv = kv_;
    backend_->attention(args);
  }

  const std::vector<float>& out() const { return out_; }

 private:
  static constexpr int kNumBlocks = 400;

  void grow(int sequence, int end) {
    tables_.resize(std::max<std::size_t>(tables_.size(), sequence + 1));
    num_written_.resize(tables_.size());
    while (static_cast<int>(tables_[sequence].size()) * kBlockTokens < end) {
      HR_CHECK(!free_.empty());
      tables_[sequence].push_back(free_.back());
      free_.pop_back();
    }
  }

  void plan(const std::vector<Part>& parts) {
    constexpr int kMaxBlocks = 100;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> offsets = {0};
    std::vector<std::int32_t> lens;
    std::vector<std::int32_t> tables;
    q_.clear();
    for (const Part& part : parts) {
      const std::vector<float> q =
          rows_of(What::kQuery, shape_, part.sequence, part.first, part.count);
      q_.insert(q_.end(), q.begin(), q.end());
      for (int i = 0; i < part.count; ++i) {
        positions.push_back(part.first + i);
      }
      offsets.push_back(static_cast<std::int32_t>(positions.size()));
      lens.push_back(part.first + part.count);
      std::vector<std::int32_t> table(kMaxBlocks);
      const int first_seen = shape_.window > 0 ? std::max(0, part.first - shape_.window + 1) : 0;
      const int end = (part.first + part.count + kBlockTokens - 1) / kBlockTokens;
      for (int b = first_seen / kBlockTokens; b < end; ++b) {
        table[b] = tables_[part.sequence][b];
      }
      tables.insert(tables.end(), table.begin(), table.end());
    }
    out_.assign(q_.size(), -7.0F);
    StepLayout::Group group;
    group.window = shape_.window;
    group.max_blocks = kMaxBlocks;
    group.block_tables = tables;
    StepLayout layout;
    layout.num_rows = static_cast<int>(positions.size());
    layout.num_sequences = static_cast<int>(parts.size());
    layout.positions = positions;
    layout.query_offsets = offsets;
    layout.context_lens = lens;
    layout.groups = std::span(&group, 1);
    backend_->plan_attention(layout);
  }

  Shape shape_;
  std::unique_ptr<Backend> backend_;
  Buffer memory_;
  KvLayer kv_;
  std::vector<std::int32_t> free_;
  std::vector<std::vector<std::int32_t>> tables_;
  std::vector<int> num_written_;
  std::vector<float> q_;
  std::vector<float> out_;
};

void expect_matches_reference(const Shape& shape, const Part& part, const std::vector<float>& out) {
  const int width = shape.num_heads * shape.head_dim;
  ASSERT_EQ(out.size(), static_cast<std::size_t>(part.count) * width);
  for (int i = 0; i < part.count; ++i) {
    const Expected expected = reference(shape, part.sequence, part.first + i);
    for (int idx = 0; idx < width; ++idx) {
      ASSERT_NEAR(out[i * width + idx], expected.out[idx], expected.tolerance)
          << "position " << part.first + i << ", value " << idx << ", head_dim " << shape.head_dim
          << ", heads " << shape.num_heads << "/" << shape.num_kv_heads << ", window "
          << shape.window;
    }
  }
}

// Equal as bits, and not a NaN.
void expect_same(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_TRUE(std::all_of(a.begin(), a.end(), [](float x) { return std::isfinite(x); }));
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

class Attention : public testing::TestWithParam<CpuTier> {};

TEST_P(Attention, MatchesFloat64AtEveryTailOfBlocksStepsAndPartitions) {
  const Shape shapes[] = {{4, 4, 16, KvType::kF32},
                          {9, 3, 64, KvType::kF16},
                          {6, 1, 128, KvType::kF32},
                          {8, 2, 32, KvType::kF16},
                          {8, 1, 48, KvType::kF32},
                          {4, 1, 256, KvType::kF16}};
  for (const Shape& shape : shapes) {
    Bench bench(shape, GetParam());
    for (const int context : {1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 513, 1100}) {
      const int count = std::min(context, 3);
      const Part part{0, context - count, count};
      ASSERT_NO_FATAL_FAILURE(expect_matches_reference(shape, part, bench.attend({part})));
    }
  }
}

TEST_P(Attention, PrefillMatchesFloat64InBothCacheTypes) {
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    const Shape shape{6, 2, 64, type, 0, 4, 2};
    Bench bench(shape, GetParam());
    const Part part{0, 200, 80};
    ASSERT_NO_FATAL_FAILURE(expect_matches_reference(shape, part, bench.attend({part})));
  }
}

TEST_P(Attention, WindowSeesItsTokensAndNothingSlidOut) {
  for (const int window : {1, 5, 16, 64, 100, 512, 2000}) {
    const Shape shape{3, 1, 32, KvType::kF16, window};
    Bench bench(shape, GetParam(), 2);
    for (const Part& part : {Part{0, 0, 40}, Part{0, 500, 20}, Part{0, 699, 1}}) {
      ASSERT_NO_FATAL_FAILURE(expect_matches_reference(shape, part, bench.attend({part})));
    }
  }
}

TEST_P(Attention, OneKeyGivesItsValueExactly) {
  const Shape shape{4, 2, 64, KvType::kF32, 0, 100, 100};
  Bench bench(shape, GetParam());
  const std::vector<float> out = bench.attend({{0, 0, 1}});
  const std::vector<float> v = rows_of(What::kValue, shape, 0, 0, 1);
  for (int head = 0; head < 4; ++head) {
    for (int d = 0; d < 64; ++d) {
      EXPECT_EQ(out[head * 64 + d], v[head / 2 * 64 + d]);
    }
  }
}

TEST_P(Attention, HugeScoresGiveNoNanAndNoInfinity) {
  for (const float gain : {1e4F, 1e15F, 1e18F}) {
    const Shape shape{3, 1, 64, KvType::kF32, 0, gain, gain};
    Bench bench(shape, GetParam());
    const std::vector<float> out = bench.attend({{0, 0, 70}});
    ASSERT_THAT(out, testing::Each(testing::Truly([](float x) { return std::abs(x) <= 1.0F; })));
  }
}

TEST_P(Attention, ValuesBeyondAHalfStopAtItsLargest) {
  const Shape shape{1, 1, 16, KvType::kF16, 0, 1, 1e6F};
  Bench bench(shape, GetParam());
  const std::vector<float> out = bench.attend({{0, 0, 40}});
  ASSERT_THAT(out, testing::Each(testing::Truly([](float x) { return std::abs(x) <= 1.0F; })));
}

// Prefill in chunks of these sizes, then token by token up to `end`.
std::vector<float> attend_in_pieces(Bench& bench, const std::vector<int>& chunks, int end) {
  std::vector<float> pieces;
  int position = 0;
  const auto attend = [&](int count) {
    const std::vector<float> out = bench.attend({{0, position, count}});
    pieces.insert(pieces.end(), out.begin(), out.end());
    position += count;
  };
  std::for_each(chunks.begin(), chunks.end(), attend);
  while (position < end) {
    attend(1);
  }
  return pieces;
}

TEST_P(Attention, ChunkedPrefillAndDecodeEqualWholePrefill) {
  for (const Shape& shape :
       {Shape{3, 1, 64, KvType::kF16, 0, 3, 3}, Shape{3, 1, 64, KvType::kF32, 100, 3, 3}}) {
    const std::vector<float> whole = Bench(shape, GetParam()).attend({{0, 0, 400}});
    Bench bench(shape, GetParam(), 2);
    expect_same(whole, attend_in_pieces(bench, {1, 7, 16, 100, 256}, 400));
  }
}

TEST_P(Attention, InABatchEqualsAlone) {
  const Shape shape{8, 2, 32, KvType::kF16, 0, 3, 3};
  const std::vector<Part> parts = {
      {0, 640, 1}, {1, 0, 100}, {2, 30, 5}, {3, 0, 1}, {4, 255, 2}, {5, 1000, 1}};
  const std::vector<float> batch = Bench(shape, GetParam(), 3).attend(parts);
  std::vector<float> alone;
  for (const Part& part : parts) {
    const std::vector<float> out = Bench(shape, GetParam()).attend({part});
    alone.insert(alone.end(), out.begin(), out.end());
  }
  expect_same(batch, alone);
}

TEST_P(Attention, BlockIdsDoNotMatter) {
  const Shape shape{4, 1, 64, KvType::kF16};
  const std::vector<Part> parts = {{0, 200, 70}, {1, 900, 1}};
  const std::vector<float> in_order =
      Bench(shape, GetParam(), 1, StreamMode::kEager, 0).attend(parts);
  const std::vector<float> shuffled =
      Bench(shape, GetParam(), 1, StreamMode::kEager, 77).attend(parts);
  expect_same(in_order, shuffled);
}

TEST_P(Attention, NumberOfThreadsDoesNotMatter) {
  for (const int window : {0, 300}) {
    const Shape shape{6, 2, 64, KvType::kF16, window, 3, 3};
    const std::vector<Part> parts = {{0, 1400, 1}, {1, 700, 60}, {2, 300, 1}};
    const std::vector<float> one = Bench(shape, GetParam(), 1).attend(parts, 2);
    for (const int num_threads : {2, 3, 5, 16}) {
      ASSERT_NO_FATAL_FAILURE(
          expect_same(one, Bench(shape, GetParam(), num_threads).attend(parts, 3)));
    }
  }
}

TEST_P(Attention, TokensWrittenLaterDoNotMatter) {
  const Shape shape{4, 2, 32, KvType::kF32};
  Bench bench(shape, GetParam());
  const std::vector<float> before = bench.attend({{0, 90, 5}});
  bench.append(0, 300);
  expect_same(before, bench.attend({{0, 90, 5}}));
}

TEST_P(Attention, LazyStreamRunsAtSynchronizeWithThePlanOfItsStep) {
  const Shape shape{4, 2, 32, KvType::kF16};
  const std::vector<float> eager = Bench(shape, GetParam()).attend({{0, 50, 30}});
  Bench lazy(shape, GetParam(), 2, StreamMode::kLazy);
  lazy.start({{0, 50, 30}});
  lazy.enqueue();
  EXPECT_THAT(lazy.out(), testing::Each(-7.0F));
  StepLayout next;  // of a later step, already planned
  next.query_offsets = {};
  lazy.backend().plan_attention(next);
  lazy.backend().synchronize();
  expect_same(eager, lazy.out());
}

INSTANTIATE_TEST_SUITE_P(Tiers,
                         Attention,
                         testing::ValuesIn(available_tiers()),
                         [](const testing::TestParamInfo<CpuTier>& tier) {
                           return std::string(tier_name(tier.param));
                         });

}  // namespace
}  // namespace headrace
