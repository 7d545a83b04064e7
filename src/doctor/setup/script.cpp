#include <fmt/format.h>

#include "base/quote.h"
#include "base/text.h"
#include "doctor/setup/setup.h"

namespace gpuwright::doctor {
namespace {

constexpr std::string_view kCheckCommand = "gpuwright setup --check ";

// "gpuwright setup --check python > ~/gpu_check.py" with the program itself, so that the script stands alone.
std::string with_program(const std::string& command, const Names& checks) {
  const std::string_view rest = std::string_view(command).substr(kCheckCommand.size());
  const std::size_t arrow = rest.find(" > ");
  std::string_view name = rest.substr(0, arrow);
  if (name == "c++") name = "cpp";
  const auto program = checks.find(name);
  if (arrow == std::string_view::npos || program == checks.end()) return command;
  return fmt::format("cat > {} <<'END_OF_PROGRAM'\n{}\nEND_OF_PROGRAM", rest.substr(arrow + 3), trim(program->second));
}

std::string indented(const std::string& command, int by) {
  // A here-document ends only at the line's beginning.
  return command.find("<<'") != std::string::npos ? command : std::string(static_cast<std::size_t>(by), ' ') + command;
}

class ScriptWriter {
 public:
  ScriptWriter(const SetupTables& tables, const SetupSet& set, std::string_view language)
      : tables_(tables), set_(set), chinese_(language == "zh") {}

  std::string write(const SetupWish& wish, const std::vector<SetupAction>& actions) {
    head(wish);
    bool in_driver = false;
    for (const SetupAction& action : actions) {
      const bool before_restart = set_.driver && !set_.driver->keeps && !wish.wsl && reboots_from(actions, action);
      if (before_restart && !in_driver && action.id != "look") {
        line("if ! driver_ready; then");
        in_driver = true;
      }
      add(action, in_driver ? 2 : 0);
      if (in_driver && action.reboot) {
        line(fmt::format("  echo {}", shell_word(say("Restart now (sudo reboot), then run this script again.",
                                                     "请现在重启（sudo reboot），然后再次运行本脚本。"))));
        line("  exit 0\nfi");
        in_driver = false;
      }
    }
    line(fmt::format("\necho {}", shell_word(say("Done.", "完成。"))));
    return std::move(text_);
  }

 private:
  std::string say(std::string_view english, std::string_view chinese) const {
    return std::string(chinese_ ? chinese : english);
  }
  void line(std::string_view text) { text_.append(text).append("\n"); }

  // Whether the action belongs to what has to be done before the restart: it or one after it restarts.
  static bool reboots_from(const std::vector<SetupAction>& actions, const SetupAction& action) {
    bool from = false;
    for (const SetupAction& one : actions) {
      from |= &one == &action;
      if (from && one.reboot) return true;
    }
    return false;
  }

  void head(const SetupWish& wish) {
    std::string gpus;
    for (const catalog::Accelerator* gpu : wish.gpus) gpus += (gpus.empty() ? "" : ", ") + printable(gpu->name);
    line("#!/usr/bin/env bash");
    line(fmt::format("# {}: {}", set_.distribution->name, gpus));
    line(say("# Run it as the user who will work here; it asks for root where it needs to. It may be run again.",
             "# 以日后使用这台机器的用户运行；需要 root 时会用 sudo。可重复运行。"));
    line("set -euo pipefail");
    line("");
    line("sudo() { if [ \"$(id -u)\" -eq 0 ]; then \"$@\"; else command sudo \"$@\"; fi; }");
    line("step() { printf '\\n== %s\\n' \"$1\"; }");
    if (set_.driver && !set_.driver->keeps && !wish.wsl)
      line(fmt::format("driver_ready() {{ [[ \"$(cat /sys/module/nvidia/version 2>/dev/null)\" == {}.* ]]; }}",
                       set_.driver->branch));
    line("");
  }

  void add(const SetupAction& action, int indent) {
    const std::string margin(static_cast<std::size_t>(indent), ' ');
    line(fmt::format("{}step {}", margin, shell_word(chinese_ ? action.title.zh : action.title.en)));
    if (action.id == "check.cpp") line("if command -v g++ >/dev/null; then");
    for (const std::string& command : action.commands)
      line(indented(command.starts_with(kCheckCommand) ? with_program(command, tables_.checks) : command,
                    action.id == "check.cpp" ? 2 : indent));
    if (action.id == "check.cpp") line("fi");
    if (action.id == "amd.driver" || action.id == "intel.driver") {
      line(fmt::format("if ! [ -w {} ]; then", action.id == "amd.driver" ? "/dev/kfd" : "/dev/dri/renderD128"));
      line(fmt::format("  echo {}", shell_word(say("Log in again, then run this script again.",
                                                   "请重新登录，然后再次运行本脚本。"))));
      line("  exit 0\nfi");
    }
  }

  const SetupTables& tables_;
  const SetupSet& set_;
  bool chinese_;
  std::string text_;
};

}  // namespace

std::string Setup::script(const SetupWish& wish, const SetupSet& set, std::string_view language) const {
  return ScriptWriter(tables_, set, language).write(wish, actions(wish, set));
}

}  // namespace gpuwright::doctor
