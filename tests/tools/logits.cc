// Writes a model's logits over windows of given tokens to standard output, for scripts/quality.
//
//   headrace_logits MODEL.gguf TOKENS [--window 512] [--first 256] [--kv f16] [--tier T] [--threads
//   N]
//
// TOKENS holds int32 token ids, a whole number of windows. Each window is one prefill of a new
// sequence; out come, as float32 [V], the rows of positions first .. window - 2: those that have a
// following token in the window.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <utility>

#include "base/thread_pool.h"
#include "formats/gguf.h"
#include "model/model.h"
#include "runner/model_runner.h"

namespace headrace {
namespace {

struct Options {
  std::string model;
  std::string tokens;
  std::string tier;
  std::string kv = "f16";
  int window = 512;
  int first = 256;
  int threads = 0;
};

struct Loaded {
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<KvManager> kv;
};

Result<std::vector<TokenId>> read_tokens(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<std::streamsize>(file.tellg());
  if (!file || bytes <= 0 || bytes % static_cast<std::streamsize>(sizeof(TokenId)) != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: not a file of int32 token ids", path);
  }
  std::vector<TokenId> tokens(static_cast<std::size_t>(bytes) / sizeof(TokenId));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(tokens.data()), bytes);
  if (!file) {
    return make_error(ErrorCode::kInvalidArgument, "{}: cannot be read", path);
  }
  return tokens;
}

Status check(const Options& options,
             const std::vector<TokenId>& tokens,
             const ModelConfig& config) {
  if (options.window > config.max_position_embeddings || options.first < 0 ||
      options.first > options.window - 2) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "--first must leave a row in --window, which the model's context of {} must hold",
        config.max_position_embeddings);
  }
  if (tokens.size() % static_cast<std::size_t>(options.window) != 0) {
    return make_error(
        ErrorCode::kInvalidArgument, "{}: not a whole number of windows", options.tokens);
  }
  for (const TokenId token : tokens) {
    if (token < 0 || token >= config.vocab_size) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: token {} is not in the vocabulary",
                        options.tokens,
                        token);
    }
  }
  return {};
}

Result<Loaded> load(const Options& options, const GgufFile& file, const ModelConfig& config) {
  HR_ASSIGN_OR_RETURN(
      std::unique_ptr<Backend> backend,
      make_cpu_backend({.num_threads = options.threads > 0 ? options.threads : available_cores(),
                        .tier = options.tier}));
  fmt::print(stderr, "{} on {} threads\n", backend->info().tier, backend->info().num_threads);
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, load_model(file, config, *backend));
  const KvType type = options.kv == "f32" ? KvType::kF32 : KvType::kF16;
  const KvLayout layout = plan_kv_layout(model->kv_shape(), type, *backend);
  const int num_blocks = KvManager(layout.groups, 1, kBlockTokens, false)
                             .max_blocks_for(options.window, options.window);
  HR_ASSIGN_OR_RETURN(std::unique_ptr<KvStorage> storage,
                      KvStorage::create(model->kv_shape(), type, num_blocks, *backend));
  const RunnerLimits limits{.max_rows = options.window,
                            .max_sequences = 1,
                            .max_logit_rows = options.window - options.first,
                            .max_context = options.window};
  Loaded loaded;
  loaded.kv = std::make_unique<KvManager>(layout.groups, num_blocks, kBlockTokens, false);
  HR_ASSIGN_OR_RETURN(
      loaded.runner,
      ModelRunner::create(std::move(backend), std::move(model), std::move(storage), limits));
  return loaded;
}

Status write_window(Loaded& loaded, std::span<const TokenId> tokens, int first) {
  const auto window = static_cast<int>(tokens.size());
  const TableId table = loaded.kv->open(0);
  const SequenceRows rows{
      .tokens = tokens, .num_computed = 0, .table = table, .num_logits = window - first};
  if (!loaded.kv->reserve(table, 0, window) ||
      !loaded.runner->run({&rows, 1}, *loaded.kv, nullptr)) {
    return make_error(ErrorCode::kInternal, "the window was not computed");
  }
  for (int i = 0; i < window - first - 1; ++i) {
    const std::span<const float> row = loaded.runner->logits(i);
    if (std::fwrite(row.data(), sizeof(float), row.size(), stdout) != row.size()) {
      return make_error(ErrorCode::kInternal, "standard output: cannot be written");
    }
  }
  loaded.kv->close(table);
  return {};
}

Status write_logits(const Options& options) {
  HR_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, read_tokens(options.tokens));
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(options.model));
  HR_ASSIGN_OR_RETURN(const ModelConfig config, read_config(file));
  HR_RETURN_IF_ERROR(check(options, tokens, config));
  HR_ASSIGN_OR_RETURN(Loaded loaded, load(options, file, config));
  const auto window = static_cast<std::size_t>(options.window);
  for (std::size_t at = 0; at < tokens.size(); at += window) {
    HR_RETURN_IF_ERROR(write_window(loaded, std::span(tokens).subspan(at, window), options.first));
  }
  return {};
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::Options options;
  CLI::App app("logits of a model over windows of tokens, as float32 to standard output");
  app.add_option("MODEL", options.model, "a GGUF file")->required();
  app.add_option("TOKENS", options.tokens, "int32 token ids, a whole number of windows")
      ->required();
  app.add_option("--window", options.window, "tokens of a window")->check(CLI::Range(2, 1 << 20));
  app.add_option("--first", options.first, "position of a window's first row that is written");
  app.add_option("--kv", options.kv, "type of the KV cache")->check(CLI::IsMember({"f16", "f32"}));
  app.add_option("--tier", options.tier, "instruction set (default: the best there is)");
  app.add_option("--threads", options.threads, "threads (default: one per usable core)")
      ->check(CLI::Range(0, 1024));
  CLI11_PARSE(app, argc, argv);
  const headrace::Status status = headrace::write_logits(options);
  if (!status.ok()) {
    fmt::print(stderr, "error: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
