#include "cli/command.h"

namespace gpuwright::cli {

std::string_view version() {
  return GPUWRIGHT_VERSION;
}

std::string_view version_date() {
  return GPUWRIGHT_DATE;
}

}  // namespace gpuwright::cli
