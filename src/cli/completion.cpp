#include "cli/completion.h"

#include <algorithm>

#include "base/text.h"

namespace gpuwright::cli {

std::map<std::string, std::vector<std::string>> words_below(const std::vector<Command>& commands) {
  std::map<std::string, std::vector<std::string>> below;
  for (const Command& command : commands) {
    if (command.hidden) continue;
    std::string name;
    for (std::string_view word : split(command.name, ' ')) {
      auto& words = below[name];
      if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
      name += (name.empty() ? "" : " ") + std::string(word);
    }
  }
  return below;
}

std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options = command.options;
  options.insert(options.end(), global_options().begin(), global_options().end());
  return options;
}

}  // namespace gpuwright::cli
