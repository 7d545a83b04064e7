// --emit and --config of `fit`: the answer as configuration files of other programs, and the reverse.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/fit_answer.h"
#include "fit/emit/emit.h"
#include "fit/emit/read.h"

namespace gpuwright::cli {

std::vector<Option> emit_options();

// What --emit asks for: nothing without it, and nothing when the answer is no, because nothing would realise it.
Result<std::optional<fit::Emission>> emission_of(const FitAnswer& answer, const Arguments& arguments);

// The job that the files after --config describe: nothing without it. What the words say goes before what the files
// say, and `gpus` is the number of those named (0: none).
Result<std::optional<fit::ReadConfig>> config_of(const Arguments& arguments, std::size_t gpus);

// Into a folder that exists, each file whole or not at all; nothing is written when one of them is there already and
// `force` is false.
Status write_emission(const fit::Emission& emission, const std::string& directory, bool force);

// The files' contents and the command line; with `directory`, where they were written instead of their contents.
void print_emission(const fit::Emission& emission, const std::string& directory, const Console& console);

// {"files": [{"name", "contents"}], "command", "notes"}
Json to_json(const fit::Emission& emission);

}  // namespace gpuwright::cli
