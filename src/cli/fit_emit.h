// --emit of `fit`: an Emission shown, or written as files that never replace others unasked.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "fit/emit/emit.h"

namespace gpuwright::cli {

// Into a folder that exists, each file whole or not at all; nothing is written when one of them is there already and
// `force` is false.
Status write_emission(const fit::Emission& emission, const std::string& directory, bool force);

// The files' contents and the command line; with `directory`, where they were written instead of their contents.
void print_emission(const fit::Emission& emission, const std::string& directory, const Console& console);

// {"files": [{"name", "contents"}], "command", "notes"}
Json to_json(const fit::Emission& emission);

}  // namespace gpuwright::cli
