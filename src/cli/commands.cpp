#include "cli/commands.h"
#include "cli/about.h"
#include "cli/command.h"
#include "cli/generate.h"

namespace gpuwright::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> all;  // an initializer list would copy each with all its options, at every start
    for (const auto& make :
         {fit_command,        stat_command,   ps_command,        topo_command,         free_command,
          record_command,     report_command, explain_command,   run_command,          doctor_command,
          setup_command,      gpus_command,   gpus_show_command, gpus_compare_command, model_show_command,
          model_list_command, help_command,   version_command,   generate_man_command, generate_completion_command})
      all.push_back(make());
    return all;
  }();
  return kCommands;
}

const std::vector<Option>& global_options() {
  static const std::vector<Option> kOptions = {
      {"--json", "", "", "answer in JSON, with a versioned schema", {}, ""},
      {"--no-color", "", "", "no colours (also: set NO_COLOR)", {}, ""},
      {"--lang",
       "",
       "LANGUAGE",
       "language of help, of explain's and run's answers, and of what is fixed in fit's",
       {"en", "zh"},
       "en"},
      {"--help", "-h", "", "explain the command", {}, ""},
      {"--version", "", "", "print the version", {}, ""},
  };
  return kOptions;
}

}  // namespace gpuwright::cli
