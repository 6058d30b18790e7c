#include <cstdlib>
#include <fmt/format.h>
#include <memory>

#include "app/bench_commands.h"
#include "base/thread_pool.h"
#include "bench/attention_speed.h"
#include "kernels/cpu/tier.h"

namespace headrace {
namespace {

constexpr const char* kFooter = R"(
The naive form scores all pairs of one head, masks, takes the softmax in a pass of its own and
multiplies with the values in a third; its products run on the flash form's tiles and threads
(naive_product_share: their share of the float peak). naive_causal leaves out what the mask hides, as
the flash form does, so that against it only the moving of scores differs. Bytes are counted by
replaying the loops through one core's second-level cache, whose size is measured; scratch is the
growth of the peak resident size in a first run; bound is derived from the roundings of both.)";

struct BenchAttentionOptions {
  AttentionSpeedOptions speed;
  std::string kv = "f16";
  int threads = 0;
  bool json = false;
};

boost::json::object to_json(const AttentionSpeed& speed) {
  boost::json::array rows;
  for (const AttentionRow& row : speed.rows) {
    rows.push_back({{"n", row.n},
                    {"naive_s", row.naive_s},
                    {"flash_s", row.flash_s},
                    {"naive_bytes", row.naive_bytes},
                    {"flash_bytes", row.flash_bytes},
                    {"naive_scratch_bytes", row.naive_scratch_bytes},
                    {"flash_scratch_bytes", row.flash_scratch_bytes},
                    {"max_abs_diff", row.max_abs_diff},
                    {"bound", row.bound},
                    {"naive_causal_s", row.naive_causal_s},
                    {"naive_causal_bytes", row.naive_causal_bytes},
                    {"naive_product_share", row.naive_product_share}});
  }
  return {{"isa", speed.isa},
          {"threads", speed.num_threads},
          {"l2_bytes", speed.l2_bytes},
          {"limits", {{"f32_flop_per_s", speed.f32_flop_per_s}}},
          {"rows", rows}};
}

void print_table(const AttentionSpeed& speed) {
  constexpr double kMega = 1e6;
  fmt::print("{} on {} threads, second-level cache {} KiB, float peak {:.0f} Gflop/s\n",
             speed.isa,
             speed.num_threads,
             speed.l2_bytes >> 10,
             speed.f32_flop_per_s / 1e9);
  fmt::print(
      "{:>6} {:>10} {:>10} {:>10} {:>7} {:>11} {:>11} {:>7} {:>10} {:>9} {:>9} {:>9} {:>8}\n",
      "n",
      "naive ms",
      "causal ms",
      "flash ms",
      "faster",
      "naive MB",
      "flash MB",
      "fewer",
      "naive scr",
      "flash scr",
      "diff",
      "bound",
      "products");
  for (const AttentionRow& row : speed.rows) {
    fmt::print(
        "{:>6} {:>10.2f} {:>10.2f} {:>10.2f} {:>6.2f}x {:>11.1f} {:>11.1f} {:>6.1f}x {:>7.1f} MB "
        "{:>6.1f} MB {:>9.2g} "
        "{:>9.2g} {:>6.0f} %\n",
        row.n,
        row.naive_s * 1e3,
        row.naive_causal_s * 1e3,
        row.flash_s * 1e3,
        row.naive_s / row.flash_s,
        static_cast<double>(row.naive_bytes) / kMega,
        static_cast<double>(row.flash_bytes) / kMega,
        static_cast<double>(row.naive_bytes) / static_cast<double>(row.flash_bytes),
        static_cast<double>(row.naive_scratch_bytes) / kMega,
        static_cast<double>(row.flash_scratch_bytes) / kMega,
        row.max_abs_diff,
        row.bound,
        row.naive_product_share * 100);
  }
}

Result<AttentionSpeed> run_bench(BenchAttentionOptions& options) {
  if (options.kv != "f16" && options.kv != "f32") {
    return make_error(
        ErrorCode::kInvalidArgument, "--kv {}: this build stores KV as f16 or f32", options.kv);
  }
  const char* const forced =
      std::getenv("HEADRACE_FORCE_ISA");  // NOLINT(concurrency-mt-unsafe): before any thread
  HR_ASSIGN_OR_RETURN(const CpuTier tier, choose_tier(forced != nullptr ? forced : ""));
  options.speed.tier = tier_name(tier);
  options.speed.kv = options.kv == "f32" ? KvType::kF32 : KvType::kF16;
  options.speed.num_threads = options.threads != 0 ? options.threads : available_cores();
  return measure_attention(options.speed, show_progress);
}

int bench_attention(BenchAttentionOptions& options) {
  const auto speed = run_bench(options);
  finish_progress();
  if (!speed.ok()) {
    return fail(speed.error());
  }
  if (options.json) {
    print_json(to_json(*speed));
  } else {
    print_table(*speed);
  }
  return kExitDone;
}

}  // namespace

void add_bench_attention_command(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchAttentionOptions>();
  AttentionSpeedOptions& speed = options->speed;
  CLI::App* command = bench.add_subcommand(
      "attention",
      "flash attention against the naive form: time, bytes moved, scratch, difference");
  command->footer(kFooter);
  command->add_option("--lengths", speed.lengths, "prompt lengths, as 512,2048")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--heads", speed.num_heads, "query heads")->capture_default_str();
  command->add_option("--kv-heads", speed.num_kv_heads, "KV heads")->capture_default_str();
  command->add_option("--head-dim", speed.head_dim, "values of a head")->capture_default_str();
  command->add_option("--kv", options->kv, "type of the KV cache: f16 or f32")
      ->capture_default_str();
  command->add_option("--repeat", speed.repeat, "runs, of which the median counts")
      ->capture_default_str();
  command->add_option(
      "--threads", options->threads, "threads that compute (default: one per usable core)");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback(
      [options, &action] { action = [options] { return bench_attention(*options); }; });
}

}  // namespace headrace
