// headrace: one program, one subcommand a file. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a
// gate was not met.
#include <CLI/CLI.hpp>
#include <exception>

#include "app/command.h"
#include "base/version.h"

int main(int argc, char** argv) {
  using namespace headrace;  // NOLINT(google-build-using-namespace)
  try {
    CLI::App app{"Headrace: runs and serves large language models", "headrace"};
    app.set_version_flag("--version", std::string("headrace ") + std::string(version()));
    app.require_subcommand(1);
    Action action;
    add_run_command(app, action);
    add_serve_command(app, action);
    add_pull_command(app, action);
    add_inspect_command(app, action);
    add_tokenize_command(app, action);
    add_template_command(app, action);
    add_eval_command(app, action);
    add_bench_command(app, action);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return end_parsing(app, error);
    }
    const int code = action();
    return code == kExitDone ? finish_output() : code;
  } catch (const std::exception& error) {
    return fail(make_error(ErrorCode::kInternal, "{}", error.what()));
  }
}
