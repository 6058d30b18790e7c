// Renders the chat template that a model brings (Jinja, with the settings of Hugging Face
// transformers) into a prompt that remembers, piece by piece, who wrote it: the template's own text
// and its bos/eos tokens are trusted and may hold special tokens; whatever came with the request is
// not, through every filter and method.
//
// A ChatTemplate is immutable: any number of threads may render it at once. Errors are
// kInvalidArgument: a bad template or a failing one says "chat template line N: ...",
// raise_exception says what the template says. Rendering is bounded by RenderLimits. Not done:
// integers beyond 128 bits; include, import and extends.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace {

namespace jinja {
struct Program;
}

struct RopePiece {
  std::string text;
  bool trusted = false;

  friend bool operator==(const RopePiece&, const RopePiece&) = default;
};
// Pieces are not empty, and neighbours differ in `trusted`.
using Rope = std::vector<RopePiece>;

std::string to_string(const Rope& rope);

struct RenderLimits {
  std::int64_t steps = 50'000'000;                    // nodes evaluated and items visited
  std::int64_t text_bytes = std::int64_t{256} << 20;  // text made on the way
  std::size_t output_bytes = std::size_t{64} << 20;
};

struct RenderInput {
  const boost::json::value& messages;
  const boost::json::value* tools = nullptr;      // null: none
  const boost::json::value* documents = nullptr;  // null: none
  bool add_generation_prompt = true;
  std::string bos_token = {};
  std::string eos_token = {};
  boost::json::object extra = {};            // chat_template_kwargs
  std::function<std::tm()> local_time = {};  // for strftime_now; empty: the computer's clock
  RenderLimits limits = {};
};

class ChatTemplate {
 public:
  static Result<ChatTemplate> parse(const std::string& source);

  Result<Rope> render(const RenderInput& input) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program)
      : program_(std::move(program)) {}

  std::shared_ptr<const jinja::Program> program_;
};

}  // namespace headrace
