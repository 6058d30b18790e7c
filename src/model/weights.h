// From the file's named tensors to a backend's weights. Tensors have Hugging Face's names in the
// code; GGUF's names stand in one table (weights.cc). Every shape is checked against the
// configuration before anything is packed. One thread, at load.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "kernels/backend.h"

namespace headrace {

// A vector of floats on the device (norm gains, biases).
struct Vector {
  Buffer buffer;
  const float* data() const { return buffer.as<float>(); }
};

class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, Backend& backend) : file_(file), backend_(backend) {}

  // layer_idx -1: not of a layer. `name` is Hugging Face's last part: "q_proj", "input_layernorm",
  // "lm_head".
  Result<std::unique_ptr<Weight>> linear(int layer_idx,
                                         std::string_view name,
                                         int num_rows,
                                         int num_cols,
                                         const PackOptions& options = {});
  Result<Vector> vector(int layer_idx, std::string_view name, int size);
  Result<Vector> bias(int layer_idx, std::string_view name, int size);  // "q_proj" -> its bias
  bool has(int layer_idx, std::string_view name) const;

  // An error that names a tensor of the file that nobody asked for: what a model does with it is
  // not known, and leaving it out would give wrong answers in silence.
  Status check_all_used() const;

  // The file's factors for the rotary frequencies; empty where it has none.
  Result<std::vector<float>> rope_factors(int rotary_dim);

  Backend& backend() { return backend_; }

 private:
  Result<TensorView> find(const std::string& name, int num_rows, int num_cols);
  Result<Vector> float_vector(const std::string& name, int size);

  const GgufFile& file_;
  Backend& backend_;
  std::set<std::string> used_;  // names of tensors
};

}  // namespace headrace
