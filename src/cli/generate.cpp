#include "cli/generate.h"

#include <algorithm>

#include "base/file.h"

namespace gpuwright::cli {
namespace {

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

Result<int> run_man(const Arguments& arguments, const Console& console) {
  const std::string directory = arguments.value("DIRECTORY").value_or(".");
  const auto write = [&](const std::string& name, const std::string& page) -> Status {
    GW_TRY(write_file_atomically(directory + "/" + name, page));
    console.out << directory << '/' << name << '\n';
    return {};
  };
  GW_TRY(write("gpuwright.1", man_page_of_program(commands())));
  for (const Command& command : commands())
    if (!command.hidden) GW_TRY(write("gpuwright-" + dashed(command.name) + ".1", man_page(command)));
  return kDone;
}

Result<int> run_completion(const Arguments& arguments, const Console& console) {
  const std::string shell = arguments.value("SHELL").value_or("");
  if (shell != "bash" && shell != "zsh")
    return fail(ErrorCode::bad_input, "there is no completion for the shell '" + shell + "'", "bash or zsh");
  console.out << (shell == "bash" ? bash_completion(commands()) : zsh_completion(commands()));
  return kDone;
}

}  // namespace

Command generate_man_command() {
  Command command;
  command.name = "generate man";
  command.summary = "Write the man pages into a directory";
  command.arguments = {{"DIRECTORY", "where the pages go"}};
  command.run = run_man;
  command.hidden = true;
  return command;
}

Command generate_completion_command() {
  Command command;
  command.name = "generate completion";
  command.summary = "Print the completion script of a shell";
  command.arguments = {{"SHELL", "bash or zsh"}};
  command.run = run_completion;
  command.hidden = true;
  return command;
}

}  // namespace gpuwright::cli
