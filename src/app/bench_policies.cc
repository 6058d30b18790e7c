#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <thread>

#include "app/bench_commands.h"
#include "app/model_host.h"
#include "app/text_file.h"
#include "bench/policy_run.h"
#include "bench/report.h"
#include "formats/gguf_tokenizer.h"

namespace headrace {
namespace {

struct BenchPoliciesOptions {
  std::string model;
  int requests = 96;
  std::string prompt = "lognormal:200:0.6,max=700";
  std::string output = "lognormal:200:0.8,max=1000";
  double rate = 0;
  std::uint64_t seed = 1;
  std::string trace;
  std::string record;
  std::string plot;
  bool json = false;
  EngineFlags engine;
};

struct NamedRun {
  std::string_view name;
  PolicyRun run;
};

struct PoliciesResult {
  std::vector<NamedRun> policies;
  PolicyRun contiguous;
};

Result<std::vector<LoadRequest>> load_of(const BenchPoliciesOptions& options) {
  if (!options.trace.empty()) {
    HR_ASSIGN_OR_RETURN(const std::string text, read_file(options.trace));
    return parse_trace(text, options.trace);
  }
  WorkloadSpec spec{.num_requests = options.requests, .rate = options.rate, .seed = options.seed};
  HR_ASSIGN_OR_RETURN(spec.prompt, parse_lengths(options.prompt));
  HR_ASSIGN_OR_RETURN(spec.output, parse_lengths(options.output));
  return make_workload(spec);
}

std::string trace_of(const std::vector<LoadRequest>& workload) {
  std::string text = "seconds,prompt_tokens,output_tokens\n";
  for (const LoadRequest& request : workload) {
    text +=
        fmt::format("{:.6f},{},{}\n", request.at_s, request.prompt_tokens, request.output_tokens);
  }
  return text;
}

Result<PoliciesResult> run_all(const BenchPoliciesOptions& options,
                               const std::vector<LoadRequest>& workload) {
  HR_ASSIGN_OR_RETURN(const ResolvedModel resolved, find_model_file(options.model));
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(resolved.path));
  HR_ASSIGN_OR_RETURN(TokenizerData data, read_tokenizer(file));
  HR_ASSIGN_OR_RETURN(std::shared_ptr<const Tokenizer> tokenizer,
                      Tokenizer::create(std::move(data)));
  HR_ASSIGN_OR_RETURN(const LoadedRunner loaded, load_runner(file, options.engine, show_progress));
  const KvType kv_type = options.engine.kv == "f32" ? KvType::kF32 : KvType::kF16;
  const RunnerLimits& limits = loaded.runner->limits();
  PolicySetup setup{
      .limits = {.max_sequences = limits.max_sequences,
                 .max_step_tokens = limits.max_rows,
                 .max_logit_rows = limits.max_logit_rows,
                 .batch_delay = std::chrono::milliseconds(options.engine.batch_delay_ms)},
      .groups = plan_kv_layout(loaded.runner->model().kv_shape(), kv_type, loaded.runner->backend())
                    .groups,
      .num_blocks = loaded.kv->num_blocks(),
      .tokens_per_block = loaded.kv->tokens_per_block(),
      .seed = options.seed};
  const PolicyParts parts{.runner = *loaded.runner,
                          .tokenizer = std::move(tokenizer),
                          .clock = std::make_shared<SteadyClock>(),
                          .sleep = [](Duration time) { std::this_thread::sleep_for(time); }};
  PoliciesResult result;
  for (const BatchingKind kind :
       {BatchingKind::kStatic, BatchingKind::kDynamic, BatchingKind::kContinuous}) {
    show_progress(fmt::format("{} batching of {} requests", name_of(kind), workload.size()));
    setup.batching = kind;
    HR_ASSIGN_OR_RETURN(PolicyRun run, run_policy(parts, setup, workload));
    result.policies.push_back({name_of(kind), std::move(run)});
  }
  show_progress("continuous batching over contiguous memory");
  setup.limits.reserved_tokens = limits.max_context;
  HR_ASSIGN_OR_RETURN(result.contiguous, run_policy(parts, setup, workload));
  finish_progress();
  return result;
}

boost::json::object json_of(const std::vector<double>& values) {
  const Percentiles p = percentiles(values);
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}};
}

boost::json::object json_of(const PoliciesResult& result) {
  boost::json::array policies;
  for (const auto& [name, run] : result.policies) {
    policies.push_back({{"name", name},
                        {"output_tokens_per_s", run.output_tokens_per_s},
                        {"ttft_ms", json_of(run.ttft_ms)},
                        {"e2e_ms", json_of(run.e2e_ms)},
                        {"itl_ms", json_of(run.itl_ms)},
                        {"padding_share", run.padding_share},
                        {"duration_s", run.duration_s}});
  }
  const auto layout = [](const char* name, const PolicyRun& run) {
    return boost::json::object{{"layout", name},
                               {"waste_ratio", run.waste_ratio},
                               {"output_tokens_per_s", run.output_tokens_per_s},
                               {"most_running", run.most_running},
                               {"preempted", run.num_preempted}};
  };
  return {{"policies", std::move(policies)},
          {"kv",
           {layout("paged", result.policies.back().run), layout("contiguous", result.contiguous)}}};
}

void print_table(const PoliciesResult& result) {
  fmt::print("{:<12}{:>9}{:>8}   {:<24}{:<24}{:<24}\n",
             "batching",
             "tok/s",
             "padding",
             "ttft ms p50 p90 p99",
             "e2e ms p50 p90 p99",
             "itl ms p50 p90 p99");
  for (const auto& [name, run] : result.policies) {
    const auto three = [](const std::vector<double>& values) {
      const Percentiles p = percentiles(values);
      return fmt::format("{:.0f} {:.0f} {:.0f}", p.p50, p.p90, p.p99);
    };
    fmt::print("{:<12}{:>9.1f}{:>7.0f}%   {:<24}{:<24}{:<24}\n",
               name,
               run.output_tokens_per_s,
               run.padding_share * 100,
               three(run.ttft_ms),
               three(run.e2e_ms),
               three(run.itl_ms));
  }
  fmt::print("KV memory wasted: paged {:.1f} %, contiguous {:.1f} %\n",
             result.policies.back().run.waste_ratio * 100,
             result.contiguous.waste_ratio * 100);
}

std::string page_of(const PoliciesResult& result) {
  const auto chart = [&result](const char* title, std::vector<double> PolicyRun::*values) {
    Chart out{.title = title, .x_label = "milliseconds", .y_label = "share", .series = {}};
    for (const auto& [name, run] : result.policies) {
      out.series.push_back(cumulative(std::string(name), run.*values));
    }
    return out;
  };
  const auto over_steps = [](std::string name, const PolicyRun& run) {
    ChartSeries series{.name = std::move(name), .points = {}};
    for (std::size_t i = 0; i < run.waste_by_step.size(); ++i) {
      series.points.emplace_back(static_cast<double>(i), run.waste_by_step[i]);
    }
    return series;
  };
  ReportTable table{.head = {"batching", "output tok/s", "ttft p99 ms", "itl p99 ms", "e2e p99 ms"},
                    .rows = {}};
  for (const auto& [name, run] : result.policies) {
    table.rows.push_back({std::string(name),
                          fmt::format("{:.1f}", run.output_tokens_per_s),
                          fmt::format("{:.0f}", percentile(run.ttft_ms, 0.99)),
                          fmt::format("{:.0f}", percentile(run.itl_ms, 0.99)),
                          fmt::format("{:.0f}", percentile(run.e2e_ms, 0.99))});
  }
  return report_html("headrace bench policies",
                     {std::move(table)},
                     {chart("Time to first token", &PolicyRun::ttft_ms),
                      chart("Between tokens", &PolicyRun::itl_ms),
                      chart("End to end", &PolicyRun::e2e_ms),
                      {.title = "KV memory wasted",
                       .x_label = "step",
                       .y_label = "share of allocated places",
                       .series = {over_steps("paged", result.policies.back().run),
                                  over_steps("contiguous", result.contiguous)}}});
}

int bench_policies(BenchPoliciesOptions& options) {
  const auto workload = load_of(options);
  if (!workload.ok()) {
    return fail(workload.error());
  }
  if (!options.record.empty()) {
    if (const Status written = write_text_file(options.record, trace_of(*workload));
        !written.ok()) {
      return fail(written.error());
    }
  }
  const auto result = run_all(options, *workload);
  if (!result.ok()) {
    return fail(result.error());
  }
  if (!options.plot.empty()) {
    if (const Status written = write_text_file(options.plot, page_of(*result)); !written.ok()) {
      return fail(written.error());
    }
  }
  if (options.json) {
    print_json(json_of(*result));
  } else {
    print_table(*result);
  }
  return kExitDone;
}

}  // namespace

void add_bench_policies_command(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchPoliciesOptions>();
  options->engine.context = 2048;
  options->engine.max_batch = 32;
  options->engine.prefix_cache = "off";
  CLI::App* const command = bench.add_subcommand(
      "policies",
      "one load under static, dynamic and continuous batching, paged and contiguous KV");
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  command->add_option("--requests", options->requests, "how many")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--prompt", options->prompt, "prompt tokens, as of bench serve")
      ->capture_default_str();
  command->add_option("--output", options->output, "output tokens")->capture_default_str();
  command->add_option("--rate", options->rate, "requests a second, Poisson; 0: all at the start")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--seed", options->seed, "of times, lengths and tokens")
      ->capture_default_str();
  command->add_option(
      "--trace", options->trace, "replay a file of lines SECONDS,PROMPT_TOKENS,OUTPUT_TOKENS");
  command->add_option("--record", options->record, "write the load there, as such a file");
  command->add_option("--plot", options->plot, "write an HTML page with plots here");
  command->add_flag("--json", options->json, "print one JSON object");
  options->engine.add_to(*command);
  command->remove_option(command->get_option("--batching"));  // each of them
  command->callback(
      [options, &action] { action = [options] { return bench_policies(*options); }; });
}

}  // namespace headrace
