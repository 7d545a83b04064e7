// From the words of a command line to a command and its arguments, by the rules that GNU programs taught people:
// options anywhere, `--name value`, `--name=value`, `-nVALUE`, `--` ends the options, "-5" is a number and not an
// option. What is or looks like an option is not taken for a value (but `--name=--x` is), so a forgotten
// value is noticed; "-bandwidth" is one where no option -b exists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace gpuwright::cli {

struct Invocation {
  const Command* command = nullptr;  // null: no command was named, or with --help only the first of its words
  std::string topic;                 // the words that were named: "gpus"
  Arguments arguments;
};

// Errors are bad_input and name the nearest word. With --help or --version among the words, arguments may be missing.
Result<Invocation> parse(const std::vector<std::string>& words, const std::vector<Command>& commands);

// Whether the option stands among the words; usable before (and whether or not) they can be parsed.
bool has_flag(const std::vector<std::string>& words, std::string_view name, std::string_view short_name = {});

// The command that the first plain word names, whatever else is wrong with the words; or nullptr.
const Command* command_meant(const std::vector<std::string>& words, const std::vector<Command>& commands);

// The command called exactly that, or nullptr.
const Command* find_command(std::string_view name, const std::vector<Command>& commands);
// `topic` and everything below it ("gpus" gives "gpus show" as well); hidden ones left out.
std::vector<const Command*> commands_below(std::string_view topic, const std::vector<Command>& commands);
// "no command 'fti'", with the nearest one.
tl::unexpected<Error> unknown_command(std::string_view name, const std::vector<Command>& commands);

}  // namespace gpuwright::cli
