// What --help, `gpuwright help` and the man pages say, all from the definitions of the commands.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"

namespace gpuwright::cli {

// Lines that the help page and the man pages share.
std::string usage_line(const Command& command);  // "gpuwright fit MODEL [OPTIONS]"
std::string option_words(const Option& option);  // "-c, --context TOKENS"
// Help, choices, default.
std::string option_help(const Option& option, Language language = Language::english);
std::vector<std::string> option_groups(const Command& command);  // headings in order of appearance
std::vector<std::string> exit_code_lines(const Command& command);

void print_overview(const Console& console, const std::vector<Command>& commands);
void print_command_help(const Console& console, const Command& command);
// The definition itself, for programs that build on gpuwright.
Json help_json(const Command& command);

}  // namespace gpuwright::cli
