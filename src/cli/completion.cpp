// Completion scripts. Both find the command among the leading words as the parser does, then offer its options, the
// choices of an option's value, files where an argument is a file, and the commands below.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "cli/generate.h"

namespace gpuwright::cli {
namespace {

// "gpus" -> {"show", "compare"}; "" -> all first words.
std::map<std::string, std::vector<std::string>> words_below(const std::vector<Command>& commands) {
  std::map<std::string, std::vector<std::string>> below;
  for (const Command& command : commands) {
    if (command.hidden) continue;
    std::string path;
    for (std::string_view word : split(command.name, ' ')) {
      auto& words = below[path];
      if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
      path += (path.empty() ? "" : " ") + std::string(word);
    }
  }
  return below;
}

std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options = command.options;
  options.insert(options.end(), global_options().begin(), global_options().end());
  return options;
}

bool takes_files(const Command& command) {
  return std::any_of(command.arguments.begin(), command.arguments.end(),
                     [](const Argument& argument) { return argument.is_file; });
}

std::string function_name(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return "_gpuwright_" + name;
}

// --- bash ---------------------------------------------------------------------------------------------------------

std::string bash_case(const Command& command) {
  std::string names;
  std::string values;
  for (const Option& option : options_of(command)) {
    names += option.name + " ";
    if (option.value.empty() || option.optional_value) continue;
    const std::string pattern = option.short_name.empty() ? option.name : option.name + "|" + option.short_name;
    values += fmt::format("        {}) choices='{}'; wants_value=1 ;;\n", pattern, fmt::join(option.choices, " "));
  }
  return fmt::format(
      "    '{}')\n      options='{}'\n      files={}\n      case \"$prev\" in\n{}        *) ;;\n      esac\n      ;;\n",
      command.name, trim(names), takes_files(command) ? 1 : 0, values);
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string globals;
  for (const Option& option : global_options()) globals += option.name + " ";
  std::string below;
  for (const auto& [path, words] : words_below(commands))
    below += fmt::format("    '{}') echo '{}' ;;\n", path, fmt::join(words, " "));
  std::string cases;
  for (const Command& command : commands)
    if (!command.hidden) cases += bash_case(command);
  return "# bash completion for gpuwright; made by 'gpuwright generate completion bash'.\n"
         "_gpuwright_below() {\n  case \"$1\" in\n" +
         below +
         "  esac\n}\n\n"
         R"sh(_gpuwright() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' word i
  local options=')sh" +
         std::string(trim(globals)) + R"sh(' choices='' files=0 wants_value=0
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ $word == --lang ]] && { ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)); continue; }
    [[ $word == -* ]] && continue
    [[ " $(_gpuwright_below "$path") " == *" $word "* ]] || break
    path="${path:+$path }$word"
  done
  case "$path" in
    '') [[ $prev == --lang ]] && { choices='en zh'; wants_value=1; } ;;
)sh" + cases +
         R"sh(  esac
  COMPREPLY=()
  if ((wants_value)); then
    if [[ -n $choices ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
    else
      compopt -o default
    fi
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(_gpuwright_below "$path")" -- "$cur")
    ((files)) && compopt -o default
  fi
}
complete -F _gpuwright gpuwright
)sh";
}

// --- zsh ----------------------------------------------------------------------------------------------------------

namespace {

std::string zsh_escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += std::string("\\") + c;
    else
      result += c;
  }
  return result;
}

std::string zsh_value(const Option& option) {
  if (option.value.empty()) return "";
  const std::string action = option.choices.empty() ? "_default" : fmt::format("({})", fmt::join(option.choices, " "));
  return fmt::format(":{}:{}", zsh_escape(option.value), action);
}

std::string zsh_option(const Option& option) {
  const std::string help = zsh_escape(option.help);
  const std::string star = option.repeated ? "*" : "";
  const std::string equals = option.value.empty() ? "" : (option.optional_value ? "=-" : "=");
  const std::string value = (option.optional_value ? ":" : "") + zsh_value(option);
  const std::string both =
      option.short_name.empty() || option.repeated ? star : fmt::format("({} {})", option.short_name, option.name);
  std::string spec = fmt::format("    '{}{}{}[{}]{}'\n", both, option.name, equals, help, value);
  if (!option.short_name.empty())
    spec += fmt::format("    '{}{}{}[{}]{}'\n", both, option.short_name, option.value.empty() ? "" : "+", help, value);
  return spec;
}

std::string zsh_function(const Command& command, const std::vector<std::string>& below) {
  std::string text = function_name(command.name) + "() {\n  local -a specs=(\n";
  for (const Option& option : options_of(command)) text += zsh_option(option);
  int place = 1;
  for (const Argument& argument : command.arguments) {
    std::string action = argument.is_file ? "_files" : " ";
    if (place == 1 && !below.empty())
      action = fmt::format("_alternative \"commands\\:command\\:({})\"{}", fmt::join(below, " "),
                           argument.is_file ? " \"files\\:file\\:_files\"" : "");
    text += fmt::format("    '{}:{}:{}'\n", argument.repeated ? "*" : std::to_string(place), zsh_escape(argument.name),
                        action);
    ++place;
  }
  if (command.arguments.empty() && !below.empty()) text += fmt::format("    '1:command:({})'\n", fmt::join(below, " "));
  return text + "  )\n  _arguments -s -S $specs\n}\n\n";
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  const auto below = words_below(commands);
  const auto below_of = [&](const std::string& path) {
    const auto found = below.find(path);
    return found == below.end() ? std::vector<std::string>{} : found->second;
  };
  std::string text =
      "#compdef gpuwright\n# zsh completion for gpuwright; made by 'gpuwright generate completion zsh'.\n\n";
  Command root;
  std::set<std::string> groups;
  std::string cases;
  for (const auto& [path, words] : below) {
    for (const std::string& word : words) {
      Command group;
      group.name = path.empty() ? word : path + " " + word;
      groups.insert(group.name);
    }
  }
  for (const std::string& name : groups) {
    const auto found =
        std::find_if(commands.begin(), commands.end(), [&](const Command& command) { return command.name == name; });
    Command command;
    command.name = name;
    if (found != commands.end()) command = *found;
    text += zsh_function(command, below_of(name));
    cases += fmt::format("    '{}') {} ;;\n", name, function_name(name));
  }
  std::string described;
  for (const std::string& word : below_of("")) {
    const auto found =
        std::find_if(commands.begin(), commands.end(), [&](const Command& command) { return command.name == word; });
    described +=
        fmt::format("    '{}:{}'\n", zsh_escape(word), found == commands.end() ? "" : zsh_escape(found->summary));
  }
  text += "_gpuwright_top() {\n  local -a commands=(\n" + described + "  )\n  local -a specs=(\n";
  for (const Option& option : global_options()) text += zsh_option(option);
  text += "    '1:command:{_describe command commands}'\n  )\n  _arguments -s -S $specs\n}\n\n";
  std::string known;
  for (const std::string& name : groups) known += fmt::format("'{}' ", name);
  text += "_gpuwright() {\n  local path_words='' longer\n  local -a known=(" + std::string(trim(known)) +
          R"sh()
  # The leading words that spell a command become one, so that _arguments counts its own arguments only.
  while (( CURRENT > 2 )); do
    longer="${path_words:+$path_words }${words[2]}"
    (( ${known[(Ie)$longer]} )) || break
    path_words=$longer
    shift words
    (( CURRENT-- ))
  done
  case "$path_words" in
)sh" + cases +
          R"sh(    *) _gpuwright_top ;;
  esac
}

if [ "$funcstack[1]" = _gpuwright ]; then
  _gpuwright "$@"
else
  compdef _gpuwright gpuwright
fi
)sh";
  return text;
}

}  // namespace gpuwright::cli
