// A language model on one backend: weights, and a forward pass over the rows of a step.
// Architectures stand in a registry (registry.cc), each in one file that reads like its paper.
// Weights are constant once loaded. One thread (the engine's) runs forward().
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/result.h"
#include "formats/gguf.h"
#include "kernels/backend.h"
#include "kv/kv_storage.h"
#include "model/config.h"

namespace headrace {

// Activations of a step, sized once for the largest step by plan_activations() and allocated by the
// runner.
struct Activations {
  float* x = nullptr;              // [R, H] the residual stream
  float* y = nullptr;              // [R, H] a part's output, where a norm follows it
  float* q = nullptr;              // [R, num_heads * D]
  float* k = nullptr;              // [R, num_kv_heads * D]
  float* v = nullptr;              // [R, num_kv_heads * D]
  float* attention = nullptr;      // [R, num_heads * D]
  float* mlp = nullptr;            // [R, I]
  float* cos_sin = nullptr;        // [R, rotary_dim]
  float* cos_sin_local = nullptr;  // [R, rotary_dim]
  float* last = nullptr;           // [L, H] rows whose logits are wanted
  float* logits = nullptr;         // [L, V]
};

// Everything forward() reads and writes. Arrays are on the device.
struct Step {
  Backend& backend;
  const KvStorage& kv;
  const Activations& act;
  const std::int32_t* token_ids = nullptr;     // [R]
  const std::int32_t* positions = nullptr;     // [R]
  const std::int32_t* const* slots = nullptr;  // per KV group, [R]
  const std::int32_t* logit_rows = nullptr;    // [L], rows of the step
  int num_rows = 0;
  int num_logit_rows = 0;
  const std::atomic<bool>* abort = nullptr;  // looked at between layers

  bool aborted() const { return abort != nullptr && abort->load(std::memory_order_relaxed); }
};

class Model {
 public:
  virtual ~Model() = default;
  const ModelConfig& config() const { return config_; }
  virtual KvShape kv_shape() const = 0;
  // Fills act.logits for the rows asked for and appends K and V. plan_attention() has been called
  // for this step. False: aborted between two layers.
  virtual bool forward(const Step& step) const = 0;

 protected:
  explicit Model(ModelConfig config) : config_(std::move(config)) {}

 private:
  ModelConfig config_;
};

// Floats of each array for steps of at most this many rows.
struct ActivationPlan {
  std::size_t num_floats = 0;
  Activations at(float* base) const;  // the arrays inside one buffer

  std::size_t offsets[11] = {};
};
ActivationPlan plan_activations(const ModelConfig& config, int max_rows, int max_logit_rows);

// The configuration the file states. kUnsupported names an architecture that is not known.
Result<ModelConfig> read_config(const GgufFile& file);

// Loads the weights under this configuration (as read from the file; tests change it).
// `progress` (may be empty) hears layers done and layers in all.
using LoadProgress = std::function<void(int done, int total)>;
Result<std::unique_ptr<Model>> load_model(const GgufFile& file,
                                          const ModelConfig& config,
                                          Backend& backend,
                                          const LoadProgress& progress = {});

}  // namespace headrace
