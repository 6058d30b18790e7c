#include "hub/resolve.h"

#include <filesystem>
#include <system_error>

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::string name_of(const fs::path& path) {
  const fs::path clean = path.has_filename() ? path : path.parent_path();  // "folder/" is "folder"
  return clean.extension() == ".gguf" ? clean.stem().string() : clean.filename().string();
}

}  // namespace

Result<ResolvedModel> resolve_model(const PullRequest& request, const ProgressFn& progress) {
  const std::string& name = request.name;
  if (name.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the model's name is empty: give a file, a folder or a short name");
  }
  if (find_model(request.models, name) != nullptr) {
    HR_ASSIGN_OR_RETURN(PulledModel pulled, pull(request, progress));
    return ResolvedModel{.path = std::move(pulled.path), .served_name = name};
  }
  std::error_code failure;
  if (fs::exists(name, failure)) {
    return ResolvedModel{.path = name, .served_name = name_of(name)};
  }
  std::string names;
  for (const CatalogModel& model : request.models) {
    names += (names.empty() ? "" : ", ") + model.name;
  }
  return make_error(ErrorCode::kNotFound,
                    "{}: no such file or folder, and no short name of a model ({})",
                    name,
                    names);
}

Result<ResolvedModel> resolve_model(const std::string& name_or_path, const ProgressFn& progress) {
  PullRequest request;
  request.name = name_or_path;
  request.verify = false;
  return resolve_model(request, progress);
}

}  // namespace headrace
