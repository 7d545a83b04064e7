// `gpuwright generate`, for packaging: man pages and shell completions, written from the definitions of the commands.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace gpuwright::cli {

Command generate_man_command();
Command generate_completion_command();

// The man page of one command, and of the program; roff for man(7).
std::string man_page(const Command& command);
std::string man_page_of_program(const std::vector<Command>& commands);

std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);

}  // namespace gpuwright::cli
