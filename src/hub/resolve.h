// What a command's MODEL argument means: a short name of the catalogue, fetched when it is not in
// the store yet, or a path, used as it is. A short name goes before a file of the same name in the
// current folder (./NAME is the file). May be called from any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "hub/pull.h"

namespace headrace {

struct ResolvedModel {
  std::string path;  // a file or a folder that exists
  std::string
      served_name;  // the short name, or the file's name without .gguf, or the folder's name
};

// `request.name` is the argument; the other fields are pull's. kNotFound when it is neither a path
// nor a name.
Result<ResolvedModel> resolve_model(const PullRequest& request, const ProgressFn& progress);

// With the store and pip as the environment has them, and no re-reading of what is in the store.
Result<ResolvedModel> resolve_model(const std::string& name_or_path, const ProgressFn& progress);

}  // namespace headrace
