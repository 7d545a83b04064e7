#include "cli/command.h"

namespace gpuwright::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands;
  return kCommands;
}

int run(const std::vector<std::string>&, const Console&) {
  return kUsage;
}

}  // namespace gpuwright::cli
