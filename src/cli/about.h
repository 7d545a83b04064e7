// The commands by which gpuwright speaks of itself.
#pragma once

#include <string>

#include "cli/command.h"

namespace gpuwright::cli {

Command help_command();
Command version_command();

// The overview when `topic` is empty; else the command called so, or all commands that begin with that word.
Result<int> show_help(const std::string& topic, const Console& console);
void show_version(const Console& console);

}  // namespace gpuwright::cli
