// The subcommands of `headrace bench`, one file each.
#pragma once

#include "app/command.h"

namespace headrace {

void add_bench_model_command(CLI::App& bench, Action& action);
void add_bench_attention_command(CLI::App& bench, Action& action);
void add_bench_serve_command(CLI::App& bench, Action& action);
void add_bench_policies_command(CLI::App& bench, Action& action);

}  // namespace headrace
