#include <fmt/format.h>
#include <memory>

#include "app/command.h"
#include "formats/describe.h"
#include "formats/gguf.h"

namespace headrace {
namespace {

struct InspectOptions {
  std::string model;
  bool json = false;
};

int run_inspect(const InspectOptions& options) {
  const auto resolved = find_model_file(options.model);
  if (!resolved.ok()) {
    return fail(resolved.error());
  }
  const auto file = GgufFile::open(resolved->path);
  if (!file.ok()) {
    return fail(file.error());
  }
  fmt::print("{}", options.json ? describe_json(*file) + "\n" : describe_text(*file));
  return kExitDone;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      app.add_subcommand("inspect", "show a model file's metadata, tokenizer and tensors");
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return run_inspect(*options); }; });
}

}  // namespace headrace
