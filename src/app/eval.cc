#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "app/command.h"
#include "app/model_host.h"
#include "eval/evaluate.h"
#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"

namespace headrace {
namespace {

constexpr const char* kFooter = R"(
The text is cut into windows of --context tokens that do not overlap; each is a new sequence, and the tokens
of its second half are scored, each given all before it in the window. Standard errors are of the windows'
means. mean_kl is KL(REF || MODEL) in nats over the whole vocabulary. Exit code 3: the perplexity rose by
more than --max-ppl-change percent over REF's.)";

constexpr std::size_t kEnoughTokens = 50'000;

struct EvalOptions {
  std::string model;
  std::string text;
  std::string against;
  std::optional<double> max_ppl_change;
  int windows = 0;
  EngineFlags engine;
  bool json = false;
};

// A model loaded for one sequence of --context tokens.
struct EvalSubject {
  std::string path;
  TextWindows windows;
  LoadedRunner loaded;

  EvalModel model() const { return {.runner = *loaded.runner, .kv = *loaded.kv}; }
};

// Logits of a block take at most 64 MiB, but a block has no fewer than 16 rows.
int block_rows(int vocab_size) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  return static_cast<int>(
      std::clamp<std::int64_t>(kBytes / (std::int64_t{4} * vocab_size), 16, 256));
}

Result<EvalSubject> load_subject(const EvalOptions& options, const std::string& name) {
  EvalSubject subject;
  HR_ASSIGN_OR_RETURN(const std::string text, read_file(options.text));
  HR_ASSIGN_OR_RETURN(const ResolvedModel resolved, find_model_file(name));
  subject.path = resolved.path;
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(resolved.path));
  HR_ASSIGN_OR_RETURN(TokenizerData data, read_tokenizer(file));
  auto tokenizer = Tokenizer::create(std::move(data));
  if (!tokenizer) {
    return std::move(tokenizer.error()).within(file.name());
  }
  auto windows = cut_windows(**tokenizer, text, options.engine.context, options.windows);
  if (!windows) {
    return std::move(windows.error()).within(options.text);
  }
  subject.windows = *std::move(windows);
  HR_ASSIGN_OR_RETURN(const ModelConfig config, read_config(file));
  EngineFlags flags = options.engine;
  flags.max_batch = 1;
  flags.max_step_tokens = std::min(flags.context, 512);
  flags.logit_rows = block_rows(config.vocab_size);
  flags.prefix_cache = "off";
  HR_ASSIGN_OR_RETURN(subject.loaded, load_runner(file, flags, show_progress));
  if ((*tokenizer)->vocab_size() > config.vocab_size) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: {} tokens, but the embedding has {} rows",
                      file.name(),
                      (*tokenizer)->vocab_size(),
                      config.vocab_size);
  }
  return subject;
}

Status check_same_vocabulary(const EvalSubject& model, const EvalSubject& reference) {
  const int mine = model.loaded.runner->vocab_size();
  const int other = reference.loaded.runner->vocab_size();
  if (mine != other) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--against {}: its vocabulary has {} tokens, that of {} has {}",
                      reference.path,
                      other,
                      model.path,
                      mine);
  }
  if (model.windows.tokens != reference.windows.tokens) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--against {}: it reads the text as other tokens than {} does",
                      reference.path,
                      model.path);
  }
  return {};
}

void warn_of_short_text(const EvalOptions& options, const TextWindows& windows) {
  const std::size_t used = windows.tokens.size();
  if (used < kEnoughTokens) {
    fmt::print(stderr,
               "headrace: warning: {}: {} tokens; small changes show from {} on\n",
               options.text,
               used,
               kEnoughTokens);
  }
}

Result<Evaluation> run_eval(const EvalOptions& options) {
  HR_ASSIGN_OR_RETURN(const EvalSubject subject, load_subject(options, options.model));
  std::optional<EvalSubject> reference;
  if (!options.against.empty()) {
    HR_ASSIGN_OR_RETURN(reference, load_subject(options, options.against));
    HR_RETURN_IF_ERROR(check_same_vocabulary(subject, *reference));
  }
  finish_progress();
  warn_of_short_text(options, subject.windows);
  std::optional<EvalModel> reference_model;
  if (reference) {
    reference_model.emplace(reference->model());
  }
  ThreadPool pool(options.engine.threads > 0 ? options.engine.threads : available_cores());
  return evaluate(
      subject.model(),
      reference_model ? &*reference_model : nullptr,
      subject.windows,
      pool,
      [&](int done, double nll) {
        show_progress(fmt::format(
            "window {} of {}, perplexity {:.4f}", done, subject.windows.count(), perplexity(nll)));
      });
}

// d exp(x) = exp(x) dx.
double perplexity_error(const Estimate& nll) { return perplexity(nll.mean) * nll.standard_error; }

double change_error_pct(const Estimate& change) {
  return std::exp(change.mean) * change.standard_error * 100;
}

boost::json::object to_json(const EvalOptions& options, const Evaluation& result) {
  boost::json::object out{{"ppl", perplexity(result.nll.mean)},
                          {"ppl_se", perplexity_error(result.nll)},
                          {"nll", result.nll.mean},
                          {"nll_se", result.nll.standard_error},
                          {"tokens", result.num_tokens},
                          {"windows", result.num_windows},
                          {"context", options.engine.context}};
  if (result.against) {
    const Divergence& against = *result.against;
    out["against"] = {{"ppl", perplexity(against.reference_nll.mean)},
                      {"ppl_change_pct", perplexity_change_pct(against.nll_change)},
                      {"ppl_change_pct_se", change_error_pct(against.nll_change)},
                      {"mean_kl", against.kl.mean},
                      {"mean_kl_se", against.kl.standard_error},
                      {"p99_kl", against.kl_p99},
                      {"max_kl", against.kl_max},
                      {"top1_agreement_pct", against.top1_agreement.mean * 100},
                      {"top1_agreement_pct_se", against.top1_agreement.standard_error * 100}};
  }
  return out;
}

void print_table(const Evaluation& result) {
  fmt::print("perplexity      {:.4f} ± {:.4f}  ({} tokens of {} windows)\n",
             perplexity(result.nll.mean),
             perplexity_error(result.nll),
             result.num_tokens,
             result.num_windows);
  if (!result.against) {
    return;
  }
  const Divergence& against = *result.against;
  fmt::print("reference       {:.4f}\n", perplexity(against.reference_nll.mean));
  fmt::print("change          {:+.3f} % ± {:.3f}\n",
             perplexity_change_pct(against.nll_change),
             change_error_pct(against.nll_change));
  fmt::print("KL              {:.6f} ± {:.6f}, p99 {:.5f}\n",
             against.kl.mean,
             against.kl.standard_error,
             against.kl_p99);
  fmt::print("same top token  {:.2f} % ± {:.2f}\n",
             against.top1_agreement.mean * 100,
             against.top1_agreement.standard_error * 100);
}

// What the gate says of a result; not a number is no pass.
bool gate_holds(const EvalOptions& options, const Evaluation& result) {
  return !options.max_ppl_change ||
         perplexity_change_pct(result.against->nll_change) <= *options.max_ppl_change;
}

int eval_command(const EvalOptions& options) {
  const auto result = run_eval(options);
  finish_progress();
  if (!result.ok()) {
    return fail(result.error());
  }
  if (options.json) {
    print_json(to_json(options, *result));
  } else {
    print_table(*result);
  }
  if (gate_holds(options, *result)) {
    return kExitDone;
  }
  fmt::print(
      stderr,
      "headrace: the perplexity changed by {:+.3f} %, more than --max-ppl-change {} allows\n",
      perplexity_change_pct(result->against->nll_change),
      *options.max_ppl_change);
  return finish_output() == kExitDone ? kExitGate : kExitFailed;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalOptions>();
  options->engine.context = 512;
  CLI::App* command = app.add_subcommand(
      "eval", "perplexity over a text, and divergence from a reference model; a gate");
  command->footer(kFooter);
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  command->add_option("--text", options->text, "the text, a file")->required();
  CLI::Option* against =
      command->add_option("--against",
                          options->against,
                          "the reference: perplexity change, KL divergence, same top token");
  command
      ->add_option(
          "--max-ppl-change",
          options->max_ppl_change,
          "the most percent that the perplexity may rise over the reference's; else exit 3")
      ->needs(against);
  command->add_option("--context", options->engine.context, "tokens of a window")
      ->check(CLI::Range(4, 1 << 20))
      ->capture_default_str();
  command
      ->add_option(
          "--windows", options->windows, "at most so many windows, evenly spread (default: all)")
      ->check(at_least(1));
  command->add_option("--kv", options->engine.kv, "type of the KV cache: f16 or f32")
      ->capture_default_str();
  command->add_option(
      "--threads", options->engine.threads, "threads that compute (default: one per usable core)");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return eval_command(*options); }; });
}

}  // namespace headrace
