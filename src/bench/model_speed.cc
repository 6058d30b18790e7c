#include "bench/model_speed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/machine.h"
#include "base/random.h"

namespace headrace {
namespace {

// Sequences of random tokens through a runner.
class Driver {
 public:
  Driver(ModelRunner& runner, KvManager& kv) : runner_(runner), kv_(kv) {}

  // Seconds to compute `count` tokens at positions [first, first + count).
  Result<double> compute(TableId table, int first, int count) {
    const TimePoint start = clock_.now();
    for (int done = first; done < first + count;) {
      const int n = std::min(runner_.limits().max_rows, first + count - done);
      tokens_.resize(static_cast<std::size_t>(n));
      std::generate(tokens_.begin(), tokens_.end(), [this] { return next_token(); });
      HR_RETURN_IF_ERROR(reserve(table, done, done + n));
      const SequenceRows rows{
          .tokens = tokens_, .num_computed = done, .table = table, .num_logits = 1};
      HR_CHECK(runner_.run({&rows, 1}, kv_, nullptr));
      done += n;
    }
    return to_seconds(clock_.now() - start);
  }

  Result<double> prefill(int count) {
    const TableId table = kv_.open(0);
    auto seconds = compute(table, 0, count);
    kv_.close(table);
    return seconds;
  }

  // One step of all sequences at this position.
  Status decode_step(const std::vector<TableId>& tables, int position) {
    tokens_.resize(tables.size());
    std::vector<SequenceRows> rows;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      tokens_[i] = next_token();
      HR_RETURN_IF_ERROR(reserve(tables[i], position, position + 1));
      rows.push_back({.tokens = {&tokens_[i], 1},
                      .num_computed = position,
                      .table = tables[i],
                      .num_logits = 1});
    }
    HR_CHECK(runner_.run(rows, kv_, nullptr));
    return {};
  }

  // Seconds of `steps` steps of all sequences behind `depth` tokens.
  Result<double> decode(const std::vector<TableId>& tables, int depth, int steps) {
    const TimePoint start = clock_.now();
    for (int step = 0; step < steps; ++step) {
      HR_RETURN_IF_ERROR(decode_step(tables, depth + step));
    }
    return to_seconds(clock_.now() - start);
  }

  // As many sequences as there are not yet.
  Status open(std::vector<TableId>& tables, int count, int depth) {
    while (static_cast<int>(tables.size()) < count) {
      tables.push_back(kv_.open(0));
      HR_RETURN_IF_ERROR(compute(tables.back(), 0, depth));
    }
    return {};
  }

  void close(std::vector<TableId>& tables) {
    for (const TableId table : tables) {
      kv_.close(table);
    }
    tables.clear();
  }

 private:
  TokenId next_token() {
    const auto vocab = static_cast<float>(runner_.vocab_size());
    return static_cast<TokenId>(uniform(1, counter_++, 0) * vocab);
  }

  Status reserve(TableId table, int num_computed, int num_tokens) {
    if (!kv_.reserve(table, num_computed, num_tokens)) {
      return make_error(
          ErrorCode::kExhausted,
          "the memory for KV does not hold these sequences: give fewer with --batch, or a smaller "
          "--depth or --generate");
    }
    return {};
  }

  ModelRunner& runner_;
  KvManager& kv_;
  SteadyClock clock_;
  std::uint64_t counter_ = 0;
  std::vector<TokenId> tokens_;
};

// Limits measured around the runs, in order.
struct LimitSeries {
  std::vector<double> int8, f32, read;

  void add(const MachineLimits& limits) {
    int8.push_back(limits.int8_ops_per_s);
    f32.push_back(limits.f32_flop_per_s);
    read.push_back(limits.read_bytes_per_s);
  }
};

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) {
    value *= factor;
  }
  return values;
}

class Measurement {
 public:
  Measurement(const ModelUnderTest& model,
              const ModelSpeedOptions& options,
              MachineProbe& probe,
              const std::function<void(const std::string&)>& progress)
      : work_(model.work),
        options_(options),
        probe_(probe),
        progress_(progress),
        driver_(model.runner, model.kv) {}

  Status measure_prefill(ModelSpeed& out) {
    const std::size_t read =
        read_bytes(*std::min_element(options_.batch.begin(), options_.batch.end()));
    HR_RETURN_IF_ERROR(driver_.prefill(options_.prompt));  // warm
    LimitSeries limits;
    limits.add(measure_limits(probe_, read));
    std::vector<double> rates;
    for (int i = 0; i < options_.repeat; ++i) {
      progress_(
          fmt::format("prefill of {}, run {} of {}", options_.prompt, i + 1, options_.repeat));
      HR_ASSIGN_OR_RETURN(const double seconds, driver_.prefill(options_.prompt));
      rates.push_back(options_.prompt / seconds);
      limits.add(measure_limits(probe_, read));
    }
    out.limits = {median(limits.int8), median(limits.f32), median(limits.read)};
    out.prefill_tokens_per_s = median(rates);
    const double linear = linear_ops(work_, 1);
    const double attention = attention_ops(work_, 0, options_.prompt) / options_.prompt;
    HR_ASSIGN_OR_RETURN(out.prefill_share_of_int8_peak,
                        share_of_limit(scaled(rates, linear), limits.int8, "int8 peak"));
    HR_ASSIGN_OR_RETURN(
        out.prefill_share_with_attention,
        share_of_limit(scaled(rates, linear + attention), limits.int8, "int8 peak"));
    if (work_.float_weights) {
      HR_ASSIGN_OR_RETURN(out.prefill_share_of_f32_peak,
                          share_of_limit(scaled(rates, linear), limits.f32, "float peak"));
    }
    return {};
  }

  Result<DecodeSpeed> measure_decode(int batch) {
    DecodeSpeed out;
    out.batch = batch;
    out.bytes_per_step = step_bytes(batch);
    std::vector<double> rates;
    LimitSeries limits;
    limits.add(measure_limits(probe_, read_bytes(batch)));
    std::vector<TableId> tables;
    for (int i = 0; i < options_.repeat; ++i) {
      progress_(fmt::format("decode of {} streams, run {} of {}", batch, i + 1, options_.repeat));
      HR_RETURN_IF_ERROR(driver_.open(tables, batch, options_.depth));
      HR_ASSIGN_OR_RETURN(const double seconds,
                          driver_.decode(tables, options_.depth, options_.generate));
      rates.push_back(batch * options_.generate / seconds);
      limits.add(measure_limits(probe_, read_bytes(batch)));
      if (slides()) {
        driver_.close(tables);
      }  // else the next run overwrites what this one appended
    }
    driver_.close(tables);
    out.tokens_per_s = median(rates);
    out.read_bytes_per_s = median(limits.read);
    HR_ASSIGN_OR_RETURN(
        out.share_of_read_bandwidth,
        share_of_limit(scaled(rates, out.bytes_per_step / batch), limits.read, "read bandwidth"));
    HR_ASSIGN_OR_RETURN(
        out.share_of_int8_peak,
        share_of_limit(scaled(rates, linear_ops(work_, 1)), limits.int8, "int8 peak"));
    return out;
  }

  double step_bytes(int batch) const {
    return work_.weight_bytes + batch * kv_bytes_per_step(work_, options_.depth, options_.generate);
  }
  // At least what a core's caches hold: a smaller buffer is read too quickly to be timed.
  std::size_t read_bytes(int batch) const {
    return std::max(std::size_t{1} << 20, static_cast<std::size_t>(step_bytes(batch)));
  }

 private:
  // Blocks before a window are given back, so a sequence cannot go back to where it was.
  bool slides() const {
    return std::any_of(
        work_.layer_windows.begin(), work_.layer_windows.end(), [](int w) { return w > 0; });
  }

  const ModelWork& work_;
  const ModelSpeedOptions& options_;
  MachineProbe& probe_;
  const std::function<void(const std::string&)>& progress_;
  Driver driver_;
};

// Of memory itself: a buffer twice the last-level cache, as far as there is memory for it.
double measure_memory(MachineProbe& probe) {
  constexpr std::size_t kLeast = std::size_t{256} << 20;
  const std::size_t bytes = std::max(kLeast, 2 * last_level_cache_bytes());
  if (bytes > available_memory_bytes() / 2 || !probe.reserve(bytes).ok()) {
    return 0;
  }
  return probe.read_bytes_per_s(bytes);
}

}  // namespace

Status check_options(const ModelSpeedOptions& options, int max_context) {
  const bool sane = options.prompt > 0 && options.generate > 0 && options.depth >= 0 &&
                    options.repeat > 0 && !options.batch.empty() &&
                    std::all_of(options.batch.begin(), options.batch.end(), [](int b) {
                      return b > 0 && b <= 4096;
                    });
  if (!sane) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "--prompt, --generate, --batch and --repeat must be positive, --batch at most 4096");
  }
  if (options.prompt > max_context || options.depth > max_context - options.generate) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the lengths asked for are longer than the context of {}",
                      max_context);
  }
  return {};
}

Result<ModelSpeed> measure_model(const ModelUnderTest& model,
                                 const ModelSpeedOptions& options,
                                 const std::function<void(const std::string&)>& progress) {
  const BackendInfo info = model.runner.backend().info();
  HR_ASSIGN_OR_RETURN(const std::unique_ptr<MachineProbe> probe,
                      MachineProbe::create(info.tier, info.num_threads));
  ModelSpeed out;
  out.isa = info.tier;
  out.num_threads = info.num_threads;
  Measurement measurement(model, options, *probe, progress);
  out.memory_read_bytes_per_s = measure_memory(*probe);
  HR_RETURN_IF_ERROR(probe->reserve(
      measurement.read_bytes(*std::max_element(options.batch.begin(), options.batch.end()))));
  HR_RETURN_IF_ERROR(measurement.measure_prefill(out));
  for (const int batch : options.batch) {
    HR_ASSIGN_OR_RETURN(const DecodeSpeed decode, measurement.measure_decode(batch));
    out.decode.push_back(decode);
  }
  return out;
}

}  // namespace headrace
