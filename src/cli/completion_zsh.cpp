// The zsh script takes the leading words that spell a command off the line and hands the rest to _arguments with what
// that command takes.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/completion.h"
#include "cli/generate.h"
#include "cli/parse.h"

namespace gpuwright::cli {
namespace {

constexpr std::string_view kHead = R"sh(#compdef gpuwright
# zsh completion for gpuwright, written by 'gpuwright generate completion zsh'

)sh";

constexpr std::string_view kComplete = R"sh(_gpuwright() {
  local name='' word i=2
  while (( i < CURRENT )); do
    word=${words[i]}
    if [[ $word == --lang ]]; then
      (( i += 2 ))
    elif [[ $word == -* ]]; then
      (( i++ ))
    elif (( $+functions[_gpuwright_${${name:+$name $word}:-$word}] )); then
      name=${${name:+$name $word}:-$word}
      words[i]=()
      (( CURRENT-- ))
    else
      break
    fi
  done
  "_gpuwright_$name"
}

_gpuwright "$@"
)sh";

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// Inside 'single quotes', in a specification of _arguments.
std::string escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// '(-c --context)-c+[how many tokens]:TOKENS:_default'
std::string option_lines(const Option& option) {
  std::string value;
  if (!option.value.empty())
    value = fmt::format("{}:{}:{}", option.optional_value ? ":" : "", escape(option.value),
                        option.choices.empty() ? "_default" : fmt::format("({})", fmt::join(option.choices, " ")));
  const auto line = [&](const std::string& name, std::string_view joint) {
    std::string before = option.repeated ? "*" : "";
    if (!option.repeated && !option.short_name.empty()) before = fmt::format("({} {})", option.short_name, option.name);
    return fmt::format("    '{}{}{}[{}]{}'\n", before, name, option.value.empty() ? "" : joint, escape(option.help),
                       value);
  };
  std::string lines = line(option.name, option.optional_value ? "=-" : "=");
  if (!option.short_name.empty()) lines += line(option.short_name, "+");
  return lines;
}

// One function a command (and a beginning of commands); `below` are the words that may follow its name.
std::string function_of(const std::string& name, const Command* command, const std::vector<std::string>& described) {
  std::string text = fmt::format("'_gpuwright_{}'() {{\n", name);
  if (!described.empty()) {
    text += "  local -a below=(\n";
    for (const std::string& line : described) text += "    " + quoted(line) + "\n";
    text += "  )\n";
  }
  text += "  local -a specs=(\n";
  for (const Option& option : command ? options_of(*command) : global_options()) text += option_lines(option);
  int place = 0;
  for (const Argument& argument : command ? command->arguments : std::vector<Argument>{}) {
    std::string action = argument.is_file ? "_files" : " ";
    if (++place == 1 && !described.empty())
      action = argument.is_file ? "{_describe command below; _files}" : "{_describe command below}";
    text +=
        fmt::format("    '{}:{}:{}'\n", argument.repeated ? "*" : std::to_string(place), escape(argument.name), action);
  }
  if (place == 0 && !described.empty()) text += "    '1:command:{_describe command below}'\n";
  return text + "  )\n  _arguments -s -S $specs\n}\n\n";
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  const auto below = words_below(commands);
  std::map<std::string, std::vector<std::string>> described = {{"", {}}};
  for (const auto& [name, words] : below) {
    for (const std::string& word : words) {
      const std::string longer = (name.empty() ? "" : name + " ") + word;
      const Command* command = find_command(longer, commands);
      described[name].push_back(word + ":" + (command ? command->summary : "the commands of " + longer));
      described[longer];
    }
  }
  std::string script(kHead);
  for (const auto& [name, lines] : described) script += function_of(name, find_command(name, commands), lines);
  script += kComplete;
  return script;
}

}  // namespace gpuwright::cli
