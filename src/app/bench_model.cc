#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "app/bench_commands.h"
#include "app/model_host.h"
#include "base/check.h"
#include "base/random.h"
#include "formats/gguf.h"

namespace headrace {
namespace {

struct BenchModelOptions {
  std::string model;
  int prompt = 512;
  int generate = 128;
  std::vector<int> batch = {1};
  int depth = 0;
  int repeat = 5;
  bool json = false;
  EngineFlags engine;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Drives a runner without an engine: the model's own speed.
class ModelBench {
 public:
  ModelBench(LoadedRunner loaded, int max_step_tokens)
      : loaded_(std::move(loaded)), max_rows_(max_step_tokens) {}

  // Seconds to compute num_tokens prompt tokens of one new sequence.
  double prefill(int num_tokens) {
    const TableId table = loaded_.kv->open(0);
    const double seconds = compute(table, 0, num_tokens);
    loaded_.kv->close(table);
    return seconds;
  }

  // Seconds of num_steps steps of num_sequences sequences, each behind `depth` tokens.
  double decode(int num_sequences, int num_steps, int depth) {
    std::vector<TableId> tables;
    for (int i = 0; i < num_sequences; ++i) {
      tables.push_back(loaded_.kv->open(0));
      if (depth > 0) {
        compute(tables.back(), 0, depth);
      }
    }
    const TimePoint start = clock_.now();
    for (int step = 0; step < num_steps; ++step) {
      decode_step(tables, depth + step);
    }
    const double seconds = to_seconds(clock_.now() - start);
    for (const TableId table : tables) {
      loaded_.kv->close(table);
    }
    return seconds;
  }

  const ModelRunner& runner() const { return *loaded_.runner; }

 private:
  // Seeded token ids; never the same prompt twice.
  TokenId next_token() {
    const auto vocab = static_cast<float>(loaded_.runner->vocab_size());
    return static_cast<TokenId>(uniform(1, counter_++, 0) * vocab);
  }

  double compute(TableId table, int first, int num_tokens) {
    const TimePoint start = clock_.now();
    for (int done = first; done < first + num_tokens;) {
      const int n = std::min(max_rows_, first + num_tokens - done);
      tokens_.resize(static_cast<std::size_t>(n));
      std::generate(tokens_.begin(), tokens_.end(), [this] { return next_token(); });
      HR_CHECK(loaded_.kv->reserve(table, done, done + n));
      const SequenceRows rows{
          .tokens = tokens_, .num_computed = done, .table = table, .num_logits = 1};
      HR_CHECK(loaded_.runner->run({&rows, 1}, *loaded_.kv, nullptr));
      done += n;
    }
    return to_seconds(clock_.now() - start);
  }

  void decode_step(const std::vector<TableId>& tables, int position) {
    tokens_.resize(tables.size());
    std::vector<SequenceRows> rows;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      tokens_[i] = next_token();
      HR_CHECK(loaded_.kv->reserve(tables[i], position, position + 1));
      rows.push_back({.tokens = {&tokens_[i], 1},
                      .num_computed = position,
                      .table = tables[i],
                      .num_logits = 1});
    }
    HR_CHECK(loaded_.runner->run(rows, *loaded_.kv, nullptr));
  }

  LoadedRunner loaded_;
  SteadyClock clock_;
  int max_rows_;
  std::uint64_t counter_ = 0;
  std::vector<TokenId> tokens_;
};

boost::json::object measure(ModelBench& bench, const BenchModelOptions& options) {
  bench.prefill(options.prompt);  // warm
  std::vector<double> prefill;
  prefill.reserve(static_cast<std::size_t>(options.repeat));
  for (int i = 0; i < options.repeat; ++i) {
    prefill.push_back(options.prompt / bench.prefill(options.prompt));
  }
  boost::json::array decode;
  for (const int batch : options.batch) {
    std::vector<double> rates;
    rates.reserve(static_cast<std::size_t>(options.repeat));
    for (int i = 0; i < options.repeat; ++i) {
      rates.push_back(batch * options.generate /
                      bench.decode(batch, options.generate, options.depth));
    }
    decode.push_back({{"batch", batch}, {"tokens_per_s", median(rates)}});
  }
  const BackendInfo info = bench.runner().backend().info();
  return {{"isa", info.tier},
          {"threads", info.num_threads},
          {"prefill_tokens_per_s", median(prefill)},
          {"decode", decode}};
}

Status check(const BenchModelOptions& options, int max_context) {
  const bool sane =
      options.prompt > 0 && options.generate > 0 && options.depth >= 0 && options.repeat > 0 &&
      std::all_of(
          options.batch.begin(), options.batch.end(), [](int b) { return b > 0 && b <= 4096; });
  if (!sane) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--prompt, --generate, --batch and --repeat must be positive");
  }
  if (options.prompt > max_context || options.depth + options.generate > max_context) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the lengths asked for are longer than the context of {}",
                      max_context);
  }
  return {};
}

int bench_model(BenchModelOptions& options) {
  const auto resolved = find_model_file(options.model);
  if (!resolved.ok()) {
    return fail(resolved.error());
  }
  const auto file = GgufFile::open(resolved->path);
  if (!file.ok()) {
    return fail(file.error());
  }
  options.engine.max_batch =
      std::max(1, *std::max_element(options.batch.begin(), options.batch.end()));
  options.engine.context = std::max(options.prompt, options.depth + options.generate);
  options.engine.prefix_cache = "off";
  auto loaded = load_runner(*file, options.engine, show_progress);
  finish_progress();
  if (!loaded.ok()) {
    return fail(loaded.error());
  }
  if (const Status sane = check(options, loaded->runner->limits().max_context); !sane.ok()) {
    return fail(sane.error());
  }
  ModelBench bench(*std::move(loaded), options.engine.max_step_tokens);
  const boost::json::object result = measure(bench, options);
  if (options.json) {
    print_json(result);
    return kExitDone;
  }
  fmt::print("{} on {} threads, {}\n",
             resolved->served_name,
             result.at("threads").as_int64(),
             result.at("isa").as_string().c_str());
  fmt::print("prefill {:>5} tokens  {:>9.1f} tok/s\n",
             options.prompt,
             result.at("prefill_tokens_per_s").as_double());
  for (const auto& row : result.at("decode").as_array()) {
    fmt::print("decode  {:>5} streams {:>9.1f} tok/s\n",
               row.at("batch").as_int64(),
               row.at("tokens_per_s").as_double());
  }
  return kExitDone;
}

}  // namespace

void add_bench_model_command(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchModelOptions>();
  CLI::App* command = bench.add_subcommand("model", "a model's prefill and decode rates; medians");
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  command->add_option("--prompt", options->prompt, "prompt tokens")->capture_default_str();
  command->add_option("--generate", options->generate, "tokens generated")->capture_default_str();
  command->add_option("--batch", options->batch, "streams, as 1,8,16")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--depth", options->depth, "tokens in the context before decoding")
      ->capture_default_str();
  command->add_option("--repeat", options->repeat, "runs, of which the median counts")
      ->capture_default_str();
  command->add_option(
      "--threads", options->engine.threads, "threads that compute (default: one per usable core)");
  command->add_option("--kv", options->engine.kv, "type of the KV cache: f16 or f32")
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return bench_model(*options); }; });
}

}  // namespace headrace
