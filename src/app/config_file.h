// Flags from a TOML file: each key is a long flag without its dashes. What the command line says
// goes before the file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace headrace {

// Sets the flags of `command` that were not given. kInvalidArgument names a key that is no flag, or
// a value that the flag refuses; nothing is set by halves for the caller, who stops at an error.
Status apply_config_file(CLI::App& command, const std::string& path);

}  // namespace headrace
