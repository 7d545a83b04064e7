#include "cli/run/outcome.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>

namespace gpuwright::cli {

std::string signal_name(int signal) {
  if (const char* name = ::sigabbrev_np(signal); name != nullptr) return std::string("SIG") + name;
  if (signal >= SIGRTMIN && signal <= SIGRTMAX) return fmt::format("SIGRTMIN+{}", signal - SIGRTMIN);
  return fmt::format("signal {}", signal);
}

std::string end_text(const ChildEnd& end) {
  if (end.signal != 0) return fmt::format("was ended by signal {} ({})", end.signal, signal_name(end.signal));
  return fmt::format("ended with exit code {}", end.exit_code);
}

}  // namespace gpuwright::cli
