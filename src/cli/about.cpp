// help and version: what gpuwright says of itself.
#include <fmt/format.h>

#include "cli/about.h"
#include "cli/help.h"
#include "cli/parse.h"

namespace gpuwright::cli {
namespace {

Json all_help_json(const std::vector<const Command*>& shown) {
  Json rows = Json::array();
  for (const Command* command : shown) rows.push(help_json(*command));
  Json globals = Json::array();
  for (const Option& option : global_options()) globals.push(option.name);
  Json answer = Json::object();
  answer.set("schema", "gpuwright.help/1");
  answer.set("commands", std::move(rows));
  answer.set("global_options", std::move(globals));
  return answer;
}

Result<int> run_help(const Arguments& arguments, const Console& console) {
  std::string topic;
  for (const std::string& word : arguments.values("COMMAND")) topic += (topic.empty() ? "" : " ") + word;
  return show_help(topic, console);
}

Result<int> run_version(const Arguments&, const Console& console) {
  show_version(console);
  return kDone;
}

}  // namespace

Result<int> show_help(const std::string& topic, const Console& console) {
  std::vector<const Command*> shown;
  if (topic.empty()) {
    for (const Command& command : commands())
      if (!command.hidden) shown.push_back(&command);
  } else if (const Command* exact = find_command(topic, commands())) {
    shown.push_back(exact);
  } else {
    shown = commands_below(topic, commands());
    if (shown.empty()) return unknown_command(topic, commands());
  }
  if (console.json) {
    console.out << all_help_json(shown).dump() << '\n';
  } else if (topic.empty()) {
    print_overview(console, commands());
  } else {
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (i > 0) console.out << '\n';
      print_command_help(console, *shown[i]);
    }
  }
  return kDone;
}

void show_version(const Console& console) {
  if (!console.json) {
    console.out << "gpuwright " << version() << '\n';
    return;
  }
  Json answer = Json::object();
  answer.set("schema", "gpuwright.version/1");
  answer.set("version", version());
  console.out << answer.dump() << '\n';
}

Command help_command() {
  Command command;
  command.name = "help";
  command.summary = "Explain a command";
  command.description = "Shows what a command takes, with examples. Without a command it lists all of them.";
  command.arguments = {{"COMMAND", "the command's name, in one or two words", false, true}};
  command.examples = {{"gpuwright help gpus show", "what 'gpus show' takes"}};
  command.run = run_help;
  return command;
}

Command version_command() {
  Command command;
  command.name = "version";
  command.summary = "Print the version";
  command.run = run_version;
  return command;
}

}  // namespace gpuwright::cli
