#include <fmt/format.h>
#include <memory>

#include "app/command.h"

namespace headrace {
namespace {

struct PullOptions {
  std::string name;
  bool json = false;
};

int run_pull(const PullOptions& options) {
  PullRequest request;
  request.name = options.name;
  const auto pulled = pull(request, show_pull_progress);
  finish_progress();
  if (!pulled.ok()) {
    return fail(pulled.error());
  }
  if (options.json) {
    print_json({{"path", pulled->path}, {"bytes", pulled->bytes}, {"sha256", pulled->sha256}});
  } else {
    fmt::print("{}\n", pulled->path);
  }
  return kExitDone;
}

}  // namespace

void add_pull_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<PullOptions>();
  CLI::App* command = app.add_subcommand("pull", "fetch a model once and print its path");
  std::string names;
  for (const CatalogModel& model : catalog()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
  }
  command->add_option("NAME", options->name, "short name: " + names)->required();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &action] { action = [options] { return run_pull(*options); }; });
}

}  // namespace headrace
