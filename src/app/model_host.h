// Everything that stands behind one served model: file, tokenizer, template, weights, KV memory and
// engine, made in the right order from one set of options. Made by one thread; the parts have their
// own rules.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "chat/chat_template.h"
#include "engine/engine.h"
#include "hub/resolve.h"
#include "kernels/backend.h"
#include "model/model.h"
#include "runner/model_runner.h"

namespace headrace {

// The engine's flags, the same for run, serve and bench.
struct EngineFlags {
  int threads = 0;         // 0: one per core this process may use
  int context = 0;         // 0: the model's own
  std::string kv = "f16";  // f32, f16
  std::string kv_memory = "auto";
  int max_batch = 32;
  int max_step_tokens = 512;
  std::string batching = "continuous";
  int batch_delay_ms = 50;
  std::string prefix_cache = "on";
  std::string weights = "as-is";
  std::string draft = "off";
  int tp = 1;
  int logit_rows = 0;  // of a step; 0: one per sequence, at least 64. No flag: callers set it

  void add_to(CLI::App& command);
};

struct HostSettings {
  SchedulerLimits scheduler;
  int max_queue = 256;
  std::int64_t max_queue_tokens = 0;
  Duration queue_timeout{0};
  Duration slo_ttft{0};  // 0: none
  Duration slo_itl{0};
  std::shared_ptr<Metrics> metrics;  // may be null
};

class ModelHost {
 public:
  // `model` is a path; progress hears a line for a person.
  static Result<std::unique_ptr<ModelHost>> load(
      const ResolvedModel& model,
      const EngineFlags& flags,
      const HostSettings& settings,
      const std::function<void(const std::string&)>& progress);

  Engine& engine() { return *engine_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::shared_ptr<const Tokenizer> shared_tokenizer() const { return tokenizer_; }
  std::shared_ptr<const ChatTemplate> chat_template() const {
    return chat_template_;
  }  // null: the model has none
  const std::string& name() const { return name_; }
  const BackendInfo& backend() const { return backend_info_; }
  const MemoryCounters& memory() const { return *memory_; }
  int max_context() const { return engine_->max_context(); }

 private:
  Status load_text_parts(const GgufFile& file);

  std::string name_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> chat_template_;
  BackendInfo backend_info_;
  const MemoryCounters* memory_ = nullptr;  // the backend's, which the engine's runner owns
  std::unique_ptr<Engine> engine_;
};

// What is loaded before an engine: shared with the benchmarks, which drive the runner themselves.
struct LoadedRunner {
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<KvManager> kv;
};
Result<LoadedRunner> load_runner(const GgufFile& file,
                                 const EngineFlags& flags,
                                 const std::function<void(const std::string&)>& progress);

}  // namespace headrace
