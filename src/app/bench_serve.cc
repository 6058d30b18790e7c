#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "app/bench_commands.h"
#include "app/text_file.h"
#include "bench/load_client.h"
#include "bench/rate_search.h"
#include "bench/report.h"

namespace headrace {
namespace {

struct BenchServeOptions {
  LoadTarget target;
  std::string api_key_file;
  std::string prompt = "128";
  std::string output = "64";
  std::string trace;
  std::string slo;
  std::string report;
  double rate = 0;
  int concurrency = 0;
  int requests = 100;
  std::uint64_t seed = 0;
  bool find_max_rate = false;
  bool json = false;
};

// What was asked for, checked and read.
struct Load {
  LoadTarget target{};
  std::vector<LoadRequest> requests{};  // at their times; with a search at one a second
  double trace_rate = 0;                // requests a second of a trace
  std::vector<SloTarget> slo{};
};

constexpr double kNarrowEnough = 1.1;  // of a search: highest held to lowest missed
constexpr int kMostTrials = 16;

Result<Load> make_load(const BenchServeOptions& options) {
  Load load{.target = options.target};
  if (!options.slo.empty()) {
    HR_ASSIGN_OR_RETURN(load.slo, parse_slo(options.slo));
  }
  if (options.find_max_rate && load.slo.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--find-max-rate needs an objective: --slo ttft_p99=2000,itl_p99=150");
  }
  if (!options.api_key_file.empty()) {
    HR_ASSIGN_OR_RETURN(const std::string text, read_file(options.api_key_file));
    load.target.api_key = text.substr(0, text.find_first_of("\r\n"));
  }
  if (!options.trace.empty()) {
    HR_ASSIGN_OR_RETURN(const std::string text, read_file(options.trace));
    HR_ASSIGN_OR_RETURN(load.requests, parse_trace(text, options.trace));
    const double span_s = load.requests.back().at_s - load.requests.front().at_s;
    load.trace_rate = static_cast<double>(load.requests.size()) / std::max(span_s, 1e-3);
  } else {
    WorkloadSpec spec{.num_requests = options.requests,
                      .rate = options.find_max_rate ? 1 : options.rate,
                      .seed = options.seed};
    HR_ASSIGN_OR_RETURN(spec.prompt, parse_lengths(options.prompt));
    HR_ASSIGN_OR_RETURN(spec.output, parse_lengths(options.output));
    load.requests = make_workload(spec);
    load.trace_rate = 1;
  }
  if (load.target.model.empty()) {
    HR_ASSIGN_OR_RETURN(load.target.model, first_model(load.target));
  }
  return load;
}

boost::json::object json_of(const Percentiles& p) {
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}};
}

boost::json::object json_of(const LoadSummary& summary, const std::vector<SloTarget>& slo) {
  boost::json::object attained;
  for (std::size_t i = 0; i < slo.size(); ++i) {
    attained[slo[i].name] = summary.slo[i];
  }
  return {{"requests",
           {{"ok", summary.num_ok},
            {"rejected", summary.num_rejected},
            {"timeout", summary.num_timeout},
            {"failed", summary.num_failed}}},
          {"duration_s", summary.duration_s},
          {"output_tokens_per_s", summary.output_tokens_per_s},
          {"ttft_ms", json_of(summary.ttft_ms)},
          {"itl_ms", json_of(summary.itl_ms)},
          {"e2e_ms", json_of(summary.e2e_ms)},
          {"slo", std::move(attained)},
          {"goodput_per_s", summary.goodput},
          {"rejected_ms", json_of(summary.rejected_ms)},
          {"prompt_tokens", summary.prompt_tokens},
          {"output_tokens", summary.output_tokens},
          {"client_cpu_s", summary.client_cpu_s}};
}

std::vector<std::string> latency_row(const char* name, const Percentiles& p) {
  return {name,
          fmt::format("{:.1f}", p.p50),
          fmt::format("{:.1f}", p.p90),
          fmt::format("{:.1f}", p.p99)};
}

void print_summary(const LoadSummary& summary, const std::vector<SloTarget>& slo) {
  fmt::print("{} ok, {} rejected, {} timeout, {} failed in {:.1f} s; {:.1f} output tok/s\n",
             summary.num_ok,
             summary.num_rejected,
             summary.num_timeout,
             summary.num_failed,
             summary.duration_s,
             summary.output_tokens_per_s);
  fmt::print("{:<8}{:>10}{:>10}{:>10}\n", "ms", "p50", "p90", "p99");
  for (const auto& row : {latency_row("ttft", summary.ttft_ms),
                          latency_row("itl", summary.itl_ms),
                          latency_row("e2e", summary.e2e_ms)}) {
    fmt::print("{:<8}{:>10}{:>10}{:>10}\n", row[0], row[1], row[2], row[3]);
  }
  for (std::size_t i = 0; i < slo.size(); ++i) {
    fmt::print(
        "{} <= {} ms: {:.2f} % met it\n", slo[i].name, slo[i].limit_ms, summary.slo[i] * 100);
  }
  if (!summary.first_error.empty()) {
    fmt::print("a failure: {}\n", summary.first_error.substr(0, 300));
  }
}

std::string html_of(const LoadResult& result, const LoadSummary& summary) {
  std::vector<double> ttft;
  std::vector<double> e2e;
  std::vector<double> itl;
  ChartSeries by_time{.name = "ttft", .dots = true};
  for (const LoadSample& sample : result.samples) {
    if (sample.outcome == LoadOutcome::kOk) {
      ttft.push_back(sample.ttft_ms);
      e2e.push_back(sample.e2e_ms);
      itl.insert(itl.end(), sample.itl_ms.begin(), sample.itl_ms.end());
      by_time.points.emplace_back(sample.start_s, sample.ttft_ms);
    }
  }
  const ReportTable counts{
      .head = {"ok", "rejected", "timeout", "failed", "output tok/s", "goodput/s", "client CPU s"},
      .rows = {{std::to_string(summary.num_ok),
                std::to_string(summary.num_rejected),
                std::to_string(summary.num_timeout),
                std::to_string(summary.num_failed),
                fmt::format("{:.1f}", summary.output_tokens_per_s),
                fmt::format("{:.3f}", summary.goodput),
                fmt::format("{:.2f}", summary.client_cpu_s)}}};
  const ReportTable latencies{.head = {"ms", "p50", "p90", "p99"},
                              .rows = {latency_row("ttft", summary.ttft_ms),
                                       latency_row("itl", summary.itl_ms),
                                       latency_row("e2e", summary.e2e_ms)}};
  const auto chart = [](const char* title, ChartSeries series) {
    return Chart{.title = title,
                 .x_label = "milliseconds",
                 .y_label = "share of requests",
                 .series = {std::move(series)}};
  };
  return report_html("headrace bench serve",
                     {counts, latencies},
                     {chart("Time to first token", cumulative("ttft", std::move(ttft))),
                      chart("Between tokens", cumulative("itl", std::move(itl))),
                      chart("End to end", cumulative("e2e", std::move(e2e))),
                      {.title = "Time to first token by arrival",
                       .x_label = "seconds after the start",
                       .y_label = "milliseconds",
                       .series = {std::move(by_time)}}});
}

struct Measured {
  LoadResult result;
  LoadSummary summary;
};

Result<Measured> measure(const Load& load, const LoadPlan& plan) {
  auto result = run_load(load.target, plan, [&plan](int num_ended) {
    show_progress(fmt::format("{} of {} requests have ended", num_ended, plan.requests.size()));
  });
  finish_progress();
  if (!result.ok()) {
    return result.error();
  }
  LoadSummary summary = summarize(*result, load.slo);
  return Measured{*std::move(result), std::move(summary)};
}

// Each trial has other prompts, so that none is answered from a cache of the one before.
Result<Measured> search_rate(const Load& load,
                             const BenchServeOptions& options,
                             RateSearch& search) {
  std::optional<Measured> best;
  std::uint64_t seed = options.seed;
  while (const std::optional<double> rate = search.next()) {
    const LoadPlan plan{.requests = speed_up(load.requests, *rate / load.trace_rate),
                        .seed = ++seed * 7919};
    HR_ASSIGN_OR_RETURN(Measured measured, measure(load, plan));
    fmt::print(stderr, "{:.3f} requests/s: {}\n", *rate, measured.summary.held ? "held" : "missed");
    const bool highest = measured.summary.held && *rate > search.max_rate();
    search.note({*rate, measured.summary.held});
    if (!best || highest) {
      best = std::move(measured);
    }
  }
  return *std::move(best);
}

int bench_serve(BenchServeOptions& options) {
  const auto load = make_load(options);
  if (!load.ok()) {
    return fail(load.error());
  }
  RateSearch search(options.rate > 0 ? options.rate : 1, kNarrowEnough, kMostTrials);
  const auto measured = options.find_max_rate ? search_rate(*load, options, search)
                                              : measure(*load,
                                                        {.requests = load->requests,
                                                         .concurrency = options.concurrency,
                                                         .seed = options.seed});
  if (!measured.ok()) {
    return fail(measured.error());
  }
  if (!options.report.empty()) {
    const Status written =
        write_text_file(options.report, html_of(measured->result, measured->summary));
    if (!written.ok()) {
      return fail(written.error());
    }
  }
  if (options.json) {
    boost::json::object out = json_of(measured->summary, load->slo);
    if (options.find_max_rate) {
      boost::json::array tried;
      for (const RateTrial& trial : search.tried()) {
        tried.push_back({{"rate", trial.rate}, {"held", trial.held}});
      }
      out["max_rate"] = search.max_rate();
      out["tried"] = std::move(tried);
    }
    print_json(out);
  } else {
    print_summary(measured->summary, load->slo);
    if (options.find_max_rate) {
      fmt::print("highest rate that held: {:.3f} requests/s\n", search.max_rate());
    }
  }
  return measured->summary.num_ok > 0 ? kExitDone : kExitFailed;
}

void add_load_options(CLI::App& command, BenchServeOptions& options) {
  auto* const rate =
      command.add_option("--rate", options.rate, "requests a second, Poisson; 0: all at the start")
          ->check(CLI::Range(0.0, 1e6));
  command
      .add_option("--concurrency", options.concurrency, "so many are under way at once; no rate")
      ->check(CLI::Range(1, 10000))
      ->excludes(rate);
  command.add_option("--requests", options.requests, "how many")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      .add_option("--prompt",
                  options.prompt,
                  "prompt tokens: N, LOW-HIGH or lognormal:MEDIAN:SIGMA, if wanted with ,max=N")
      ->capture_default_str();
  command.add_option("--output", options.output, "output tokens, as --prompt")
      ->capture_default_str();
  command.add_option(
      "--trace", options.trace, "a file of lines SECONDS,PROMPT_TOKENS,OUTPUT_TOKENS");
  command
      .add_option("--seed",
                  options.seed,
                  "of times, lengths and words; a prefix cache knows a repeated seed's prompts")
      ->capture_default_str();
}

}  // namespace

void add_bench_serve_command(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchServeOptions>();
  CLI::App* const command =
      bench.add_subcommand("serve", "load on any server that speaks OpenAI's API");
  command->add_option("--url", options->target.url, "as http://127.0.0.1:8080")->required();
  command->add_option("--model", options->target.model, "default: the first of /v1/models");
  command->add_option("--api-key-file", options->api_key_file, "a key, in its first line");
  command->add_flag("--chat", options->target.chat, "/v1/chat/completions, not /v1/completions");
  command->add_flag(
      "!--no-ignore-eos", options->target.ignore_eos, "answers may end before their output tokens");
  command->add_option("--timeout", options->target.timeout_s, "seconds of one request")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_load_options(*command, *options);
  command->add_option("--slo", options->slo, "as ttft_p99=2000,itl_p99=150; milliseconds");
  command->add_flag(
      "--find-max-rate", options->find_max_rate, "search the highest rate that holds --slo");
  command->add_option("--report", options->report, "write an HTML page with plots here");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return bench_serve(*options); }; });
}

}  // namespace headrace
