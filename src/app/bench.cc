#include "app/bench_commands.h"
#include "app/command.h"

namespace headrace {

void add_bench_command(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "measure");
  bench->require_subcommand(1);
  add_bench_model_command(*bench, action);
  add_bench_attention_command(*bench, action);
  add_bench_serve_command(*bench, action);
  add_bench_policies_command(*bench, action);
}

}  // namespace headrace
