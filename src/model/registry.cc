#include <array>
#include <fmt/ranges.h>
#include <string_view>
#include <vector>

#include "model/architectures.h"
#include "model/model.h"

namespace headrace {
namespace {

struct Architecture {
  std::string_view name;  // GGUF's general.architecture
  Result<ModelConfig> (*read_config)(const GgufFile&);
  Result<std::unique_ptr<Model>> (*load)(const GgufFile&,
                                         const ModelConfig&,
                                         Backend&,
                                         const LoadProgress&);
};

constexpr std::array<Architecture, 3> kArchitectures = {{
    {"llama", read_llama_config, load_llama},
    {"qwen2", read_qwen2_config, load_qwen2},
    {"gemma3", read_gemma3_config, load_gemma3},
}};

Result<const Architecture*> find_architecture(const GgufFile& file, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) {
      return &architecture;
    }
    known.push_back(architecture.name);
  }
  return make_error(ErrorCode::kUnsupported,
                    "{}: architecture '{}' is not supported; {} are",
                    file.name(),
                    name,
                    fmt::join(known, ", "));
}

}  // namespace

Result<ModelConfig> read_config(const GgufFile& file) {
  HR_ASSIGN_OR_RETURN(const std::string_view name, file.metadata().string("general.architecture"));
  HR_ASSIGN_OR_RETURN(const Architecture* architecture, find_architecture(file, name));
  return architecture->read_config(file);
}

Result<std::unique_ptr<Model>> load_model(const GgufFile& file,
                                          const ModelConfig& config,
                                          Backend& backend,
                                          const LoadProgress& progress) {
  HR_ASSIGN_OR_RETURN(const Architecture* architecture,
                      find_architecture(file, config.architecture));
  return architecture->load(file, config, backend, progress);
}

}  // namespace headrace
