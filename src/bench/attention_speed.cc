#include "bench/attention_speed.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/machine.h"
#include "base/random.h"
#include "bench/attention_bound.h"
#include "bench/attention_traffic.h"
#include "bench/machine_limits.h"
#include "bench/resident.h"
#include "kernels/naive_attention.h"
#include "kernels/probe.h"
#include "tensor/half.h"

namespace headrace {
namespace {

// Queries are larger than keys and values, so that the softmax has something to choose.
constexpr float kMaxQuery = 4;
constexpr float kMaxKeyOrValue = 1;
constexpr int kLongest = 131072;
constexpr double kForever = 1e9;  // seconds

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// One layer's cache of one sequence, and its queries.
class Layer {
 public:
  static Result<std::unique_ptr<Layer>> create(const AttentionSpeedOptions& options,
                                               int num_tokens) {
    auto layer = std::make_unique<Layer>();
    HR_ASSIGN_OR_RETURN(layer->backend_,
                        make_cpu_backend({options.num_threads, options.tier, StreamMode::kEager}));
    Backend& backend = *layer->backend_;
    const int num_blocks = (num_tokens + kBlockTokens - 1) / kBlockTokens;
    KvLayer& kv = layer->args_.kv;
    kv.type = options.kv;
    kv.num_kv_heads = options.num_kv_heads;
    kv.head_dim = options.head_dim;
    const std::size_t block_bytes = backend.kv_block_bytes(kv.type, kv.num_kv_heads, kv.head_dim);
    kv.block_stride = static_cast<std::int64_t>(block_bytes);
    HR_ASSIGN_OR_RETURN(layer->kv_memory_,
                        backend.alloc(block_bytes * to_size(num_blocks + 1), MemoryPart::kKv));
    kv.base = layer->kv_memory_.as<>();
    fill(layer->kv_memory_, kv.type);
    layer->blocks_.resize(to_size(num_blocks));
    std::iota(layer->blocks_.begin(), layer->blocks_.end(), 1);
    layer->num_tokens_ = num_tokens;
    layer->q_.resize(to_size(num_tokens) * to_size(options.num_heads) * to_size(options.head_dim));
    for (std::size_t i = 0; i < layer->q_.size(); ++i) {
      layer->q_[i] = (2 * uniform(2, i, 0) - 1) * kMaxQuery;
    }
    layer->args_.q = layer->q_.data();
    layer->args_.num_heads = options.num_heads;
    layer->args_.scale = 1.0F / std::sqrt(static_cast<float>(options.head_dim));
    return layer;
  }

  void run_flash(std::vector<float>& out) {
    const std::vector<std::int32_t> offsets = {0, num_tokens_};
    StepLayout::Group group;
    group.max_blocks = static_cast<int>(blocks_.size());
    group.block_tables = blocks_;
    StepLayout layout;
    layout.num_rows = num_tokens_;
    layout.num_sequences = 1;
    layout.query_offsets = offsets;
    layout.context_lens = std::span(&num_tokens_, 1);
    layout.groups = std::span(&group, 1);
    backend_->plan_attention(layout);
    args_.out = out.data();
    backend_->attention(args_);
    backend_->synchronize();
  }

  // Lowers product_s to the seconds spent in the two products, if they are fewer.
  Status run_naive(NaiveAttention& naive,
                   NaiveScope scope,
                   std::vector<float>& out,
                   double& product_s) {
    args_.out = out.data();
    HR_ASSIGN_OR_RETURN(const double seconds, naive.run(args_, blocks_, num_tokens_, scope));
    product_s = std::min(product_s, seconds);
    return {};
  }

  std::size_t num_values() const { return q_.size(); }
  const Backend& backend() const { return *backend_; }

 private:
  static void fill(const Buffer& memory, KvType type) {
    const auto value = [](std::size_t i) { return (2 * uniform(1, i, 0) - 1) * kMaxKeyOrValue; };
    if (type == KvType::kF16) {
      for (std::size_t i = 0; i < memory.bytes() / 2; ++i) {
        memory.as<std::uint16_t>()[i] = f32_to_f16(value(i));
      }
    } else {
      for (std::size_t i = 0; i < memory.bytes() / 4; ++i) {
        memory.as<float>()[i] = value(i);
      }
    }
  }

  std::unique_ptr<Backend> backend_;
  Buffer kv_memory_;  // dies before its backend
  AttentionArgs args_;
  std::vector<std::int32_t> blocks_;
  std::vector<float> q_;
  int num_tokens_ = 0;
};

// Peak of resident memory during work() over what was resident before.
template <typename Work>
Result<std::size_t> scratch_of(Work&& work) {
  HR_RETURN_IF_ERROR(reset_peak_resident());
  HR_ASSIGN_OR_RETURN(const std::size_t before, resident_bytes());
  HR_RETURN_IF_ERROR(work());
  HR_ASSIGN_OR_RETURN(const std::size_t peak, peak_resident_bytes());
  return peak > before ? peak - before : 0;
}

class Comparison {
 public:
  Comparison(const AttentionSpeedOptions& options, MachineProbe& probe, std::size_t l2_bytes)
      : options_(options), probe_(probe), l2_bytes_(l2_bytes) {}

  Result<AttentionRow> compare(int n) {
    AttentionRow row;
    row.n = n;
    count_bytes(row);
    HR_ASSIGN_OR_RETURN(const std::unique_ptr<Layer> layer, Layer::create(options_, n));
    HR_ASSIGN_OR_RETURN(const std::unique_ptr<NaiveAttention> naive,
                        NaiveAttention::create(layer->backend().info().tier, options_.num_threads));
    std::vector<float> flash(layer->num_values());
    std::vector<float> exact(layer->num_values());
    HR_ASSIGN_OR_RETURN(row.flash_scratch_bytes, scratch_of([&]() -> Status {
                          layer->run_flash(flash);
                          return {};
                        }));
    HR_ASSIGN_OR_RETURN(row.naive_scratch_bytes, scratch_of([&] {
                          double product_s = kForever;
                          return layer->run_naive(*naive, NaiveScope::kAllPairs, exact, product_s);
                        }));
    for (std::size_t i = 0; i < flash.size(); ++i) {
      row.max_abs_diff =
          std::max(row.max_abs_diff, static_cast<double>(std::abs(flash[i] - exact[i])));
    }
    row.bound = attention_bound({.num_tokens = n,
                                 .head_dim = options_.head_dim,
                                 .scale = 1 / std::sqrt(options_.head_dim),
                                 .max_query = kMaxQuery,
                                 .max_key = kMaxKeyOrValue,
                                 .max_value = kMaxKeyOrValue});
    if (!(row.max_abs_diff <= row.bound)) {
      return make_error(
          ErrorCode::kInternal,
          "n {}: the two forms differ by {:.3g}, more than the {:.3g} that rounding explains",
          n,
          row.max_abs_diff,
          row.bound);
    }
    HR_RETURN_IF_ERROR(time(*layer, *naive, flash, row));
    return row;
  }

  double f32_flop_per_s() const { return median(peaks_); }

 private:
  void count_bytes(AttentionRow& row) const {
    const AttentionShape shape{.num_tokens = row.n,
                               .num_heads = options_.num_heads,
                               .num_kv_heads = options_.num_kv_heads,
                               .head_dim = options_.head_dim,
                               .value_bytes = options_.kv == KvType::kF16 ? 2 : 4};
    row.flash_bytes = flash_traffic(shape, l2_bytes_);
    row.naive_bytes = naive_traffic(shape, NaiveScope::kAllPairs, l2_bytes_);
    row.naive_causal_bytes = naive_traffic(shape, NaiveScope::kUnmasked, l2_bytes_);
  }

  struct Samples {
    std::vector<double> flash_s, naive_s, causal_s, products_s, peaks;
  };

  // The forms in turn, the float peak between them.
  Status time(Layer& layer, NaiveAttention& naive, std::vector<float>& out, AttentionRow& row) {
    Samples samples;
    samples.peaks.push_back(probe_.f32_flop_per_s());
    for (int i = 0; i < options_.repeat; ++i) {
      HR_RETURN_IF_ERROR(time_once(layer, naive, out, samples));
      samples.peaks.push_back(probe_.f32_flop_per_s());
    }
    row.flash_s = median(samples.flash_s);
    row.naive_s = median(samples.naive_s);
    row.naive_causal_s = median(samples.causal_s);
    std::vector<double> rates;
    for (const double seconds : samples.products_s) {
      rates.push_back(4.0 * row.n * row.n * options_.num_heads * options_.head_dim / seconds);
    }
    row.naive_product_share = median_share(rates, samples.peaks);
    peaks_.insert(peaks_.end(), samples.peaks.begin(), samples.peaks.end());
    return {};
  }

  Status time_once(Layer& layer, NaiveAttention& naive, std::vector<float>& out, Samples& samples) {
    HR_RETURN_IF_ERROR(timed(samples.flash_s, [&]() -> Status {
      layer.run_flash(out);
      return {};
    }));
    double product_s = kForever;
    HR_RETURN_IF_ERROR(timed(samples.naive_s, [&] {
      return layer.run_naive(naive, NaiveScope::kAllPairs, out, product_s);
    }));
    samples.products_s.push_back(product_s);
    return timed(samples.causal_s,
                 [&] { return layer.run_naive(naive, NaiveScope::kUnmasked, out, product_s); });
  }

  // Short work is repeated until it can be timed; the least of these counts, as for the probes
  // beside it.
  template <typename Work>
  Status timed(std::vector<double>& seconds, Work&& work) {
    constexpr double kLeastSeconds = 0.02;
    double best = 0;
    for (double elapsed = 0; elapsed < kLeastSeconds;) {
      const TimePoint start = clock_.now();
      HR_RETURN_IF_ERROR(work());
      const double took = to_seconds(clock_.now() - start);
      best = elapsed == 0 ? took : std::min(best, took);
      elapsed += took;
    }
    seconds.push_back(best);
    return {};
  }

  const AttentionSpeedOptions& options_;
  MachineProbe& probe_;
  std::size_t l2_bytes_;
  SteadyClock clock_;
  std::vector<double> peaks_;
};

}  // namespace

Status check_options(const AttentionSpeedOptions& options) {
  const bool lengths = !options.lengths.empty() &&
                       std::all_of(options.lengths.begin(), options.lengths.end(), [](int n) {
                         return n > 0 && n <= kLongest;
                       });
  if (!lengths || options.repeat < 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--lengths must be in [1, {}] and --repeat positive",
                      kLongest);
  }
  if (options.num_threads < 1 || options.num_threads > 1024) {
    return make_error(ErrorCode::kInvalidArgument, "--threads must be in [1, 1024]");
  }
  const bool heads = options.num_heads > 0 && options.num_heads <= 1024 &&
                     options.num_kv_heads > 0 && options.num_heads % options.num_kv_heads == 0;
  if (!heads || options.head_dim < 16 || options.head_dim > 512 || options.head_dim % 16 != 0) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "--heads must be a multiple of --kv-heads, and --head-dim one of 16 up to 512");
  }
  const auto n = to_size(*std::max_element(options.lengths.begin(), options.lengths.end()));
  const std::size_t needed = n * n * sizeof(float);
  if (needed > available_memory_bytes() / 10 * 9) {
    return make_error(
        ErrorCode::kExhausted,
        "the naive form's scores of {} tokens take {} MiB and {} are free: give shorter --lengths",
        n,
        needed >> 20,
        available_memory_bytes() >> 20);
  }
  return {};
}

Result<AttentionSpeed> measure_attention(const AttentionSpeedOptions& options,
                                         const std::function<void(const std::string&)>& progress) {
  HR_RETURN_IF_ERROR(check_options(options));
  HR_ASSIGN_OR_RETURN(const std::unique_ptr<MachineProbe> probe,
                      MachineProbe::create(options.tier, options.num_threads));
  AttentionSpeed out;
  out.isa = options.tier;
  out.num_threads = options.num_threads;
  out.l2_bytes = measure_l2_bytes();
  Comparison comparison(options, *probe, out.l2_bytes);
  for (const int n : options.lengths) {
    progress(fmt::format("attention over {} tokens", n));
    HR_ASSIGN_OR_RETURN(const AttentionRow row, comparison.compare(n));
    out.rows.push_back(row);
  }
  out.f32_flop_per_s = comparison.f32_flop_per_s();
  return out;
}

}  // namespace headrace
