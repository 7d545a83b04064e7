// What the completion scripts of all shells are made from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/command.h"

namespace gpuwright::cli {

// What may follow the words of a name: "" -> {"gpus", "fit"}, "gpus" -> {"show", "compare"}. Hidden ones left out.
std::map<std::string, std::vector<std::string>> words_below(const std::vector<Command>& commands);

// The command's own options and the global ones.
std::vector<Option> options_of(const Command& command);

}  // namespace gpuwright::cli
