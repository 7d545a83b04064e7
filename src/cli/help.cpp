#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/style.h"

namespace gpuwright::cli {
namespace {

constexpr int kTextWidth = 100;  // lines longer than this are hard to read
constexpr int kHelpColumn = 30;
constexpr std::string_view kFooter =
    "'gpuwright help COMMAND' explains a command. Exit codes: 0 done, 1 the answer is no, 2 wrong words or input, 3 "
    "something is missing or unreachable, 4 a fault of gpuwright.";

int text_width(const Console& console) {
  return std::clamp(console.width, 40, kTextWidth);
}

// "  --context TOKENS          how many tokens ...", the text wrapped in its own column.
void print_term(const Console& console, const std::string& term, std::string_view text) {
  const int column = text_width(console) >= 70 ? kHelpColumn : 8;
  const int used = 2 + display_width(term);
  console.out << "  " << paint(console, Tone::name, term);
  if (used + 2 > column)
    console.out << '\n' << std::string(static_cast<std::size_t>(column), ' ');
  else
    console.out << std::string(static_cast<std::size_t>(column - used), ' ');
  console.out << wrap(text, text_width(console), column) << '\n';
}

void print_examples(const Console& console, const std::vector<Example>& examples) {
  print_heading(console, say(console, "Examples"));
  for (const Example& example : examples) {
    console.out << "  " << paint(console, Tone::name, example.command) << '\n';
    console.out << "      " << wrap(say(console, example.what), text_width(console), 6) << '\n';
  }
}

void print_options(const Console& console, std::string_view title, const std::vector<Option>& options,
                   std::string_view group) {
  print_heading(console, say(console, title));
  for (const Option& option : options)
    if (option.group == group) print_term(console, option_words(option), option_help(option, console.language));
}

}  // namespace

std::string usage_line(const Command& command) {
  std::string line = "gpuwright " + command.name;
  for (const Argument& argument : command.arguments) {
    const std::string name = argument.name + (argument.repeated ? "..." : "");
    line += argument.required ? " " + name : " [" + name + "]";
  }
  return command.options.empty() ? line : line + " [OPTIONS]";
}

std::string option_words(const Option& option) {
  std::string words = option.short_name.empty() ? option.name : option.short_name + ", " + option.name;
  if (option.value.empty()) return words;
  return words + (option.optional_value ? "[=" + option.value + "]" : " " + option.value);
}

std::string option_help(const Option& option, Language language) {
  std::string text(in_language(language, option.help));
  const bool told = std::all_of(option.choices.begin(), option.choices.end(), [&](const std::string& choice) {
    return (option.help + " " + option.value).find(choice) != std::string::npos;
  });
  if (!told) text += fmt::format("{}{}", in_language(language, ": "), fmt::join(option.choices, ", "));
  if (option.repeated) text += in_language(language, "; may be given several times");
  if (!option.aliases.empty()) text += fmt::format(" [{}]", fmt::join(option.aliases, ", "));
  if (!option.default_text.empty())
    text +=
        fmt::format(fmt::runtime(in_language(language, " (default: {})")), in_language(language, option.default_text));
  return text;
}

std::vector<std::string> option_groups(const Command& command) {
  std::vector<std::string> groups;
  for (const Option& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  return groups;
}

std::vector<std::string> exit_code_lines(const Command& command) {
  if (!command.exit_notes.empty()) return command.exit_notes;
  return {"0  done", "2  the words of the command or its input are wrong",
          "3  something needed is missing or unreachable, or the answer could not be written"};
}

void print_overview(const Console& console, const std::vector<Command>& commands) {
  console.out << paint(console, Tone::heading, "gpuwright") << " " << version() << ": "
              << say(console, "one toolset for GPU work in deep learning") << "\n\n"
              << say(console, "Usage: gpuwright COMMAND [ARGUMENTS] [OPTIONS]") << '\n';
  print_heading(console, say(console, "Commands"));
  for (const Command& command : commands)
    if (!command.hidden) print_term(console, command.name, say(console, command.summary));
  print_options(console, "Options of every command", global_options(), "");
  console.out << '\n' << wrap(say(console, kFooter), text_width(console)) << '\n';
}

void print_command_help(const Console& console, const Command& command) {
  console.out << paint(console, Tone::heading, "gpuwright " + command.name) << ": " << say(console, command.summary)
              << "\n\n";
  console.out << say(console, "Usage: ") << usage_line(command) << '\n';
  if (!command.description.empty())
    console.out << '\n' << wrap(say(console, command.description), text_width(console)) << '\n';
  if (!command.arguments.empty()) print_heading(console, say(console, "Arguments"));
  for (const Argument& argument : command.arguments) print_term(console, argument.name, say(console, argument.help));
  for (const std::string& group : option_groups(command))
    print_options(console, group.empty() ? "Options" : group, command.options, group);
  print_options(console, "Options of every command", global_options(), "");
  if (!command.examples.empty()) print_examples(console, command.examples);
  print_heading(console, say(console, "Exit codes"));
  for (const std::string& line : exit_code_lines(command))
    console.out << "  " << wrap(say(console, line), text_width(console), 5) << '\n';
}

Json help_json(const Command& command) {
  Json options = Json::array();
  for (const Option& option : command.options) {
    Json row = Json::object();
    row.set("name", option.name);
    if (!option.short_name.empty()) row.set("short_name", option.short_name);
    if (!option.value.empty()) row.set("value", option.value);
    row.set("help", option.help);
    if (!option.default_text.empty()) row.set("default", option.default_text);
    if (option.repeated) row.set("repeated", true);
    if (!option.choices.empty()) {
      Json choices = Json::array();
      for (const std::string& choice : option.choices) choices.push(choice);
      row.set("choices", std::move(choices));
    }
    options.push(std::move(row));
  }
  Json arguments = Json::array();
  for (const Argument& argument : command.arguments) {
    Json row = Json::object();
    row.set("name", argument.name);
    row.set("help", argument.help);
    row.set("required", argument.required);
    row.set("repeated", argument.repeated);
    arguments.push(std::move(row));
  }
  Json result = Json::object();
  result.set("name", command.name);
  result.set("summary", command.summary);
  result.set("usage", usage_line(command));
  result.set("arguments", std::move(arguments));
  result.set("options", std::move(options));
  return result;
}

}  // namespace gpuwright::cli
