// What every subcommand shares: how it ends, how it prints, and how progress is shown. Only the app
// prints and exits.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/pull.h"
#include "hub/resolve.h"

namespace headrace {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitGate = 3;  // a gate was not met

// One line on stderr, whatever the message holds; the exit code that fits the error.
int fail(const Error& error);

// How the command line itself ends: help and version on stdout, an error as one line that names the
// command whose --help says more.
int end_parsing(const CLI::App& app, const CLI::ParseError& error);

// For CLI11's check(): a whole number of at least `low`.
CLI::Validator at_least(int low);

// The same: a whole number of 64 bits, with or without a sign.
CLI::Validator whole_number();

// The whole file; a folder or what cannot be read is an error that names it.
Result<std::string> read_file(const std::string& path);

// One JSON object and a newline on stdout.
void print_json(const boost::json::value& value);

// Writes out what standard output still holds: an error, and its exit code, where that fails.
int finish_output();

// A line on stderr that overwrites itself on a terminal, and nothing in a pipe. finish() clears it.
void show_progress(const std::string& line);
void finish_progress();

// Fetching a model, on stderr: notices always, progress on a terminal.
void show_pull_progress(const PullProgress& progress);

// MODEL as a path that exists, fetched first where it is a short name.
Result<ResolvedModel> find_model_file(const std::string& model);

// A command's code, set when its subcommand was given; main runs it after parsing.
using Action = std::function<int()>;

void add_pull_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_serve_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_tokenize_command(CLI::App& app, Action& action);
void add_template_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);

}  // namespace headrace
