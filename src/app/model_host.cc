#include "app/model_host.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "formats/gguf_tokenizer.h"

namespace headrace {
namespace {

Error usage(std::string param, std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(param)};
}

Status check_flags(const EngineFlags& flags) {
  if (flags.threads < 0 || flags.threads > 1024) {
    return usage("threads", "--threads must be in [1, 1024]");
  }
  if (flags.kv != "f16" && flags.kv != "f32") {
    return usage("kv", fmt::format("--kv {}: this build stores KV as f16 or f32", flags.kv));
  }
  if (flags.prefix_cache != "on" && flags.prefix_cache != "off") {
    return usage("prefix-cache", "--prefix-cache is on or off");
  }
  if (flags.weights != "as-is") {
    return usage("weights",
                 fmt::format("--weights {}: this build serves a file's own weights; leave it out",
                             flags.weights));
  }
  if (flags.draft != "off") {
    return usage(
        "draft",
        fmt::format("--draft {}: this build decodes without drafts; leave it out or say off",
                    flags.draft));
  }
  if (flags.tp != 1) {
    return usage("tp", fmt::format("--tp {}: this build runs a model on one device", flags.tp));
  }
  if (!batching_kind(flags.batching)) {
    return usage("batching",
                 fmt::format("--batching {}: it is {}", flags.batching, kBatchingNames));
  }
  if (flags.batch_delay_ms < 0 || flags.batch_delay_ms > 60000) {
    return usage("batch-delay-ms", "--batch-delay-ms must be in [0, 60000]");
  }
  if (flags.max_batch < 1 || flags.max_batch > 4096) {
    return usage("max-batch", "--max-batch must be in [1, 4096]");
  }
  if (flags.max_step_tokens < flags.max_batch || flags.max_step_tokens > 65536) {
    return usage("max-step-tokens",
                 fmt::format("--max-step-tokens {} must be in [--max-batch {}, 65536]",
                             flags.max_step_tokens,
                             flags.max_batch));
  }
  return {};
}

Result<int> choose_context(const EngineFlags& flags,
                           const ModelConfig& config,
                           const GgufFile& file) {
  if (flags.context < 0 || flags.context > config.max_position_embeddings) {
    return usage("context",
                 fmt::format("--context {}: {} was made for up to {} tokens",
                             flags.context,
                             file.name(),
                             config.max_position_embeddings));
  }
  return flags.context == 0 ? config.max_position_embeddings : flags.context;
}

std::string size_text(std::size_t num_bytes) {
  const double mib = static_cast<double>(num_bytes) / (1024.0 * 1024.0);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

// The context that fits, or, where next to nothing does, the memory that is needed.
Error too_little_kv(bool given, int context, std::size_t needed, std::size_t bytes) {
  const double share = static_cast<double>(bytes) / static_cast<double>(needed);
  const int fits = static_cast<int>(context * share) / 256 * 256;
  const std::string advice = fits >= 256 ? fmt::format("use --context {}", fits)
                             : given     ? fmt::format("use --kv-memory {}M", (needed >> 20U) + 1)
                                         : std::string("free memory, or use a smaller --context");
  return make_error(ErrorCode::kExhausted,
                    "context {} needs {} for KV; {} {}: {}",
                    context,
                    size_text(needed),
                    size_text(bytes),
                    given ? "are given by --kv-memory" : "are free",
                    advice);
}

// KV blocks for context x max_batch, less where the memory is not there; an error where one
// sequence does not fit.
Result<int> choose_num_blocks(const EngineFlags& flags, const KvLayout& layout, int context) {
  const KvManager counter(layout.groups, 1, kBlockTokens, false);
  const auto one = static_cast<std::size_t>(counter.max_blocks_for(context, flags.max_step_tokens));
  const std::size_t wanted = one * static_cast<std::size_t>(flags.max_batch);
  std::size_t bytes = wanted * layout.block_bytes;
  if (flags.kv_memory != "auto") {
    HR_ASSIGN_OR_RETURN(bytes, parse_bytes(flags.kv_memory));
  } else {
    bytes = std::min(bytes, available_memory_bytes() / 10 * 8);
  }
  const std::size_t num_blocks = std::min(bytes / layout.block_bytes, wanted);
  if (num_blocks < one) {
    return too_little_kv(flags.kv_memory != "auto", context, one * layout.block_bytes, bytes);
  }
  return static_cast<int>(std::min<std::size_t>(num_blocks, 1U << 30));
}

}  // namespace

void EngineFlags::add_to(CLI::App& command) {
  command.add_option("--threads", threads, "threads that compute (default: one per usable core)");
  command.add_option("--context", context, "most tokens of a sequence (default: the model's)");
  command.add_option("--kv", kv, "type of the KV cache: f16 or f32")->capture_default_str();
  command.add_option("--kv-memory", kv_memory, "bytes for KV, as 512M or 4G, or auto")
      ->capture_default_str();
  command.add_option("--max-batch", max_batch, "most sequences at once")->capture_default_str();
  command
      .add_option(
          "--batching", batching, fmt::format("how sequences share steps: {}", kBatchingNames))
      ->capture_default_str();
  command
      .add_option("--batch-delay-ms",
                  batch_delay_ms,
                  "static and dynamic: how long the first of a batch waits for it to fill")
      ->capture_default_str();
  command.add_option("--max-step-tokens", max_step_tokens, "most rows of a step")
      ->capture_default_str();
  command.add_option("--prefix-cache", prefix_cache, "on or off")->capture_default_str();
  command.add_option("--weights", weights, "as-is: the file's own types")->capture_default_str();
  command.add_option("--draft", draft, "speculation: off")->capture_default_str();
  command.add_option("--tp", tp, "devices a model is cut over: 1")->capture_default_str();
}

Result<LoadedRunner> load_runner(const GgufFile& file,
                                 const EngineFlags& flags,
                                 const std::function<void(const std::string&)>& progress) {
  HR_RETURN_IF_ERROR(check_flags(flags));
  HR_ASSIGN_OR_RETURN(const ModelConfig config, read_config(file));
  HR_ASSIGN_OR_RETURN(const int context, choose_context(flags, config, file));
  const char* const forced =
      std::getenv("HEADRACE_FORCE_ISA");  // NOLINT(concurrency-mt-unsafe): before any thread
  HR_ASSIGN_OR_RETURN(
      std::unique_ptr<Backend> backend,
      make_cpu_backend({.num_threads = flags.threads > 0 ? flags.threads : available_cores(),
                        .tier = forced != nullptr ? forced : ""}));
  HR_ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model, load_model(file, config, *backend, [&](int done, int total) {
        progress(fmt::format("loading {}: layer {} of {}", file.name(), done, total));
      }));
  const KvType kv_type = flags.kv == "f32" ? KvType::kF32 : KvType::kF16;
  const KvLayout layout = plan_kv_layout(model->kv_shape(), kv_type, *backend);
  HR_ASSIGN_OR_RETURN(const int num_blocks, choose_num_blocks(flags, layout, context));
  HR_ASSIGN_OR_RETURN(std::unique_ptr<KvStorage> storage,
                      KvStorage::create(model->kv_shape(), kv_type, num_blocks, *backend));
  LoadedRunner loaded;
  loaded.kv = std::make_unique<KvManager>(
      layout.groups, num_blocks, kBlockTokens, flags.prefix_cache == "on");
  const int logit_rows = flags.logit_rows > 0 ? flags.logit_rows : std::max(flags.max_batch, 64);
  const RunnerLimits limits{.max_rows = flags.max_step_tokens,
                            .max_sequences = flags.max_batch,
                            .max_logit_rows = std::min(logit_rows, flags.max_step_tokens),
                            .max_context = context};
  HR_ASSIGN_OR_RETURN(
      loaded.runner,
      ModelRunner::create(std::move(backend), std::move(model), std::move(storage), limits));
  return loaded;
}

// What turns text into tokens and back; a fault in it names the file.
Status ModelHost::load_text_parts(const GgufFile& file) {
  HR_ASSIGN_OR_RETURN(TokenizerData data, read_tokenizer(file));
  if (!data.chat_template.empty()) {
    auto parsed = ChatTemplate::parse(data.chat_template);
    if (!parsed) {
      return std::move(parsed.error()).within(file.name());
    }
    chat_template_ = std::make_shared<const ChatTemplate>(*std::move(parsed));
  }
  auto tokenizer = Tokenizer::create(std::move(data));
  if (!tokenizer) {
    return std::move(tokenizer.error()).within(file.name());
  }
  tokenizer_ = *std::move(tokenizer);
  return {};
}

Result<std::unique_ptr<ModelHost>> ModelHost::load(
    const ResolvedModel& model,
    const EngineFlags& flags,
    const HostSettings& settings,
    const std::function<void(const std::string&)>& progress) {
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(model.path));
  auto host = std::make_unique<ModelHost>();
  host->name_ = model.served_name;
  HR_RETURN_IF_ERROR(host->load_text_parts(file));
  HR_ASSIGN_OR_RETURN(LoadedRunner loaded, load_runner(file, flags, progress));
  if (host->tokenizer_->vocab_size() > loaded.runner->vocab_size()) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: {} tokens, but the embedding has {} rows",
                      file.name(),
                      host->tokenizer_->vocab_size(),
                      loaded.runner->vocab_size());
  }
  host->backend_info_ = loaded.runner->backend().info();
  host->memory_ = &loaded.runner->backend().memory();
  SchedulerLimits scheduler = settings.scheduler;
  scheduler.max_sequences = flags.max_batch;
  scheduler.max_step_tokens = flags.max_step_tokens;
  scheduler.batch_delay = std::chrono::milliseconds(flags.batch_delay_ms);
  scheduler.max_logit_rows = loaded.runner->limits().max_logit_rows;
  Engine::Parts parts{.runner = std::move(loaded.runner),
                      .kv = std::move(loaded.kv),
                      .tokenizer = host->tokenizer_,
                      .metrics = settings.metrics,
                      .clock = std::make_shared<SteadyClock>()};
  EngineOptions options;
  options.scheduler = scheduler;
  options.batching = *batching_kind(flags.batching);
  options.max_queue = settings.max_queue;
  options.max_queue_tokens = settings.max_queue_tokens;
  options.queue_timeout = settings.queue_timeout;
  options.slo_ttft = settings.slo_ttft;
  options.slo_itl = settings.slo_itl;
  host->engine_ = std::make_unique<Engine>(std::move(parts), options);
  return host;
}

}  // namespace headrace
