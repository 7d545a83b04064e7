#include "cli/about.h"
#include "cli/command.h"
#include "cli/generate.h"

namespace gpuwright::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      help_command(),
      version_command(),
      generate_man_command(),
      generate_completion_command(),
  };
  return kCommands;
}

const std::vector<Option>& global_options() {
  static const std::vector<Option> kOptions = {
      {"--json", "", "", "answer in JSON, with a versioned schema", {}, ""},
      {"--no-color", "", "", "no colours (also: set NO_COLOR)", {}, ""},
      {"--lang", "", "LANGUAGE", "language of what people read", {"en", "zh"}, "en"},
      {"--help", "-h", "", "explain the command", {}, ""},
      {"--version", "", "", "print the version", {}, ""},
  };
  return kOptions;
}

}  // namespace gpuwright::cli
