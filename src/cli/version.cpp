#include "cli/command.h"

namespace gpuwright::cli {

std::string_view version() {
  return GPUWRIGHT_VERSION;
}

}  // namespace gpuwright::cli
