#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "app/bench_commands.h"
#include "app/model_host.h"
#include "bench/model_speed.h"
#include "formats/gguf.h"

namespace headrace {
namespace {

constexpr const char* kFooter = R"(
Shares. Of the int8 peak: 2 x parameters of the layers' matrices (no embedding, no output head) x
tokens, over the time of everything. Of the read bandwidth: the weights' bytes as in the file plus the
KV that a step reads. The limits are measured between the runs, with the same threads: the tier's
8-bit and float multiply-adds in registers, and reading a buffer as large as what one decode step
reads, so that weights which fit a cache are held against that cache, not against memory
(memory_read_bytes_per_s, beside it, is of a buffer twice the last-level cache). A share above 1 means
that the probe was disturbed, and fails.)";

struct BenchModelOptions {
  std::string model;
  ModelSpeedOptions speed;
  EngineFlags engine;
  bool json = false;
};

Result<ModelSpeed> run_bench(BenchModelOptions& options, const ResolvedModel& resolved) {
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(resolved.path));
  HR_ASSIGN_OR_RETURN(const ModelConfig config, read_config(file));
  const ModelSpeedOptions& speed = options.speed;
  HR_RETURN_IF_ERROR(check_options(speed, config.max_position_embeddings));
  options.engine.max_batch = *std::max_element(speed.batch.begin(), speed.batch.end());
  options.engine.max_step_tokens =
      std::max(options.engine.max_step_tokens, options.engine.max_batch);
  options.engine.context = std::max(speed.prompt, speed.depth + speed.generate);
  options.engine.prefix_cache = "off";
  HR_ASSIGN_OR_RETURN(const LoadedRunner loaded, load_runner(file, options.engine, show_progress));
  const KvShape kv = loaded.runner->model().kv_shape();
  const KvType type = options.engine.kv == "f32" ? KvType::kF32 : KvType::kF16;
  const double block_bytes = static_cast<double>(
      loaded.runner->backend().kv_block_bytes(type, kv.num_kv_heads, kv.head_dim));
  const ModelUnderTest model{.runner = *loaded.runner,
                             .kv = *loaded.kv,
                             .work = count_work(file, config, kv, block_bytes / kBlockTokens)};
  return measure_model(model, speed, show_progress);
}

boost::json::object to_json(const ModelSpeed& speed) {
  boost::json::array decode;
  for (const DecodeSpeed& row : speed.decode) {
    decode.push_back({{"batch", row.batch},
                      {"tokens_per_s", row.tokens_per_s},
                      {"share_of_read_bandwidth", row.share_of_read_bandwidth},
                      {"share_of_int8_peak", row.share_of_int8_peak},
                      {"bytes_per_step", row.bytes_per_step},
                      {"read_bytes_per_s", row.read_bytes_per_s}});
  }
  boost::json::object out{{"isa", speed.isa},
                          {"threads", speed.num_threads},
                          {"limits",
                           {{"int8_ops_per_s", speed.limits.int8_ops_per_s},
                            {"f32_flop_per_s", speed.limits.f32_flop_per_s},
                            {"read_bytes_per_s", speed.limits.read_bytes_per_s},
                            {"memory_read_bytes_per_s", speed.memory_read_bytes_per_s}}},
                          {"prefill_tokens_per_s", speed.prefill_tokens_per_s},
                          {"prefill_share_of_int8_peak", speed.prefill_share_of_int8_peak},
                          {"prefill_share_with_attention", speed.prefill_share_with_attention}};
  if (speed.prefill_share_of_f32_peak > 0) {
    out["prefill_share_of_f32_peak"] = speed.prefill_share_of_f32_peak;
  }
  out["decode"] = std::move(decode);
  return out;
}

void print_table(const BenchModelOptions& options,
                 const std::string& name,
                 const ModelSpeed& speed) {
  constexpr double kGiga = 1e9;
  fmt::print(
      "{} on {} threads, {}, KV {}\n", name, speed.num_threads, speed.isa, options.engine.kv);
  fmt::print(
      "limits   int8 {:.0f} Gop/s, float {:.0f} Gflop/s, reading {:.1f} GB/s (memory {:.1f} "
      "GB/s)\n",
      speed.limits.int8_ops_per_s / kGiga,
      speed.limits.f32_flop_per_s / kGiga,
      speed.limits.read_bytes_per_s / kGiga,
      speed.memory_read_bytes_per_s / kGiga);
  fmt::print(
      "prefill {:>6} tokens  {:>9.1f} tok/s  {:>3.0f} % of the int8 peak ({:.0f} % with "
      "attention)\n",
      options.speed.prompt,
      speed.prefill_tokens_per_s,
      speed.prefill_share_of_int8_peak * 100,
      speed.prefill_share_with_attention * 100);
  if (speed.prefill_share_of_f32_peak > 0) {
    fmt::print("{:>34} {:>9.0f} % of the float peak\n", "", speed.prefill_share_of_f32_peak * 100);
  }
  for (const DecodeSpeed& row : speed.decode) {
    fmt::print(
        "decode  {:>6} streams {:>9.1f} tok/s  {:>3.0f} % of the read bandwidth, {:.0f} % of the "
        "int8 peak\n",
        row.batch,
        row.tokens_per_s,
        row.share_of_read_bandwidth * 100,
        row.share_of_int8_peak * 100);
  }
}

int bench_model(BenchModelOptions& options) {
  const auto resolved = find_model_file(options.model);
  if (!resolved.ok()) {
    return fail(resolved.error());
  }
  const auto speed = run_bench(options, *resolved);
  finish_progress();
  if (!speed.ok()) {
    return fail(speed.error());
  }
  if (options.json) {
    print_json(to_json(*speed));
  } else {
    print_table(options, resolved->served_name, *speed);
  }
  return kExitDone;
}

}  // namespace

void add_bench_model_command(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchModelOptions>();
  CLI::App* command = bench.add_subcommand(
      "model", "a model's prefill and decode rates beside the machine's limits; medians");
  command->footer(kFooter);
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  command->add_option("--prompt", options->speed.prompt, "prompt tokens")->capture_default_str();
  command->add_option("--generate", options->speed.generate, "tokens generated")
      ->capture_default_str();
  command->add_option("--batch", options->speed.batch, "streams, as 1,8,16")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--depth", options->speed.depth, "tokens in the context before decoding")
      ->capture_default_str();
  command->add_option("--repeat", options->speed.repeat, "runs, of which the median counts")
      ->capture_default_str();
  command->add_option(
      "--threads", options->engine.threads, "threads that compute (default: one per usable core)");
  command->add_option("--kv", options->engine.kv, "type of the KV cache: f16 or f32")
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return bench_model(*options); }; });
}

}  // namespace headrace
