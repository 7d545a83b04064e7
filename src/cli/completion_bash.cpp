// The bash script finds the command among the leading words as the parser does, then offers its options, the choices
// of an option's value, the commands below, and files where an argument is a file or a value has no choices.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/completion.h"
#include "cli/generate.h"

namespace gpuwright::cli {
namespace {

constexpr std::string_view kHead = R"sh(# bash completion for gpuwright, written by 'gpuwright generate completion bash'

# The words that may follow the words of a command.
_gpuwright_below() {
  case "$1" in
)sh";

constexpr std::string_view kDescribe = R"sh(  esac
}

# Sets the caller's options, files, and (after an option that takes a value) wants_value and choices.
_gpuwright_describe() {
  case "$1" in
)sh";

constexpr std::string_view kComplete = R"sh(  esac
}

_gpuwright() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local name='' options='' choices='' files=0 wants_value=0 i word
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == --lang ]]; then
      ((i++))
      [[ ${COMP_WORDS[i]} == '=' ]] && ((i++))
    elif [[ $word != -* ]]; then
      [[ " $(_gpuwright_below "$name") " == *" $word "* ]] || break
      name="${name:+$name }$word"
    fi
  done
  _gpuwright_describe "$name" "$prev"
  COMPREPLY=()
  if ((wants_value)); then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
    [[ -n $choices ]] || compopt -o default
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(_gpuwright_below "$name")" -- "$cur")
    ((files)) && compopt -o default
  fi
}
complete -F _gpuwright gpuwright
)sh";

std::string describe(const std::string& name, const std::vector<Option>& options, bool files) {
  std::vector<std::string> names;
  std::string values;
  for (const Option& option : options) {
    names.push_back(option.name);
    if (option.value.empty() || option.optional_value) continue;
    const std::string pattern = option.short_name.empty() ? option.name : option.name + " | " + option.short_name;
    values += fmt::format("        {}) wants_value=1 choices='{}' ;;\n", pattern, fmt::join(option.choices, " "));
  }
  return fmt::format("    '{}')\n      options='{}' files={}\n      case \"$2\" in\n{}      esac\n      ;;\n", name,
                     fmt::join(names, " "), files ? 1 : 0, values);
}

bool takes_files(const Command& command) {
  return std::any_of(command.arguments.begin(), command.arguments.end(),
                     [](const Argument& argument) { return argument.is_file; });
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string script(kHead);
  for (const auto& [name, words] : words_below(commands))
    script += fmt::format("    '{}') echo '{}' ;;\n", name, fmt::join(words, " "));
  script += kDescribe;
  for (const Command& command : commands)
    if (!command.hidden) script += describe(command.name, options_of(command), takes_files(command));
  // No command yet, or only the first of its words.
  std::string rest = describe("", global_options(), false);
  rest.replace(rest.find("''"), 2, "*");
  script += rest;
  script += kComplete;
  return script;
}

}  // namespace gpuwright::cli
