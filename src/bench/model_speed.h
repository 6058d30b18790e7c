// A model's own speed, without an engine: prompts computed and tokens decoded by the runner, in
// steps as the engine makes them, beside the machine's limits measured between the runs. Token ids
// are seeded and never come twice, so that no cache of prompts could help. Medians of the runs. One
// thread; the runner's and the probe's workers never run at the same time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/machine_limits.h"
#include "bench/model_work.h"
#include "kv/kv_manager.h"
#include "runner/model_runner.h"

namespace headrace {

struct ModelSpeedOptions {
  int prompt = 512;
  int generate = 128;
  std::vector<int> batch = {1, 2, 4, 8, 16, 32};
  int depth = 0;  // tokens in each sequence's context before it decodes
  int repeat = 5;
};

// Positive counts that fit the context.
Status check_options(const ModelSpeedOptions& options, int max_context);

struct DecodeSpeed {
  int batch = 0;
  double tokens_per_s = 0;
  double bytes_per_step = 0;    // weights as in the file, and the KV of all sequences
  double read_bytes_per_s = 0;  // the limit, over a buffer of that size
  double share_of_read_bandwidth = 0;
  double share_of_int8_peak = 0;  // of the linear layers' operations, as in prefill
};

struct ModelSpeed {
  std::string isa;
  int num_threads = 0;
  MachineLimits limits;  // reading: a buffer of what a step of the smallest batch reads
  double memory_read_bytes_per_s = 0;  // a buffer twice the last-level cache
  double prefill_tokens_per_s = 0;
  double prefill_share_of_int8_peak =
      0;  // 2 * linear_params * tokens; the time includes everything
  double prefill_share_with_attention = 0;  // attention's products counted too
  double prefill_share_of_f32_peak = 0;     // for float weights, else 0
  std::vector<DecodeSpeed> decode;
};

struct ModelUnderTest {
  ModelRunner& runner;
  KvManager& kv;
  ModelWork work;
};

// `progress` hears a line for a person.
Result<ModelSpeed> measure_model(const ModelUnderTest& model,
                                 const ModelSpeedOptions& options,
                                 const std::function<void(const std::string&)>& progress);

}  // namespace headrace
