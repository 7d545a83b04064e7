// libnvidia-ml.so.1 of a simulated host, for programs that were written for NVIDIA's: put its folder first in
// LD_LIBRARY_PATH. It exports nothing but nvml*, and gpuwright_simulation, by which gpuwright itself knows that it
// is no driver. The environment says what is simulated:
//   GPUWRIGHT_SIMULATE        name of a built-in scenario, or the path of a file; default 8xh100
//   GPUWRIGHT_SIMULATE_TIME   stops the clock at so many seconds after the start, so that each answer is known
//   GPUWRIGHT_SIMULATE_PIDS   "71,72": take the place of the scenario's pids, in its order. Programs look their
//                             processes up in /proc, where the scenario's do not exist
//   GPUWRIGHT_SIMULATE_COUNT  a file whose first 8 bytes count the calls of all programs that name it
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "sim/host_state.h"
#include "sim/nvml.h"

namespace gpuwright::sim {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void complain(const std::string& text) {
  const std::string line = "simulated libnvidia-ml.so.1: " + text + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

void replace_pids(const std::string& list, Scenario& scenario) {
  std::map<std::int64_t, std::int64_t> replaced;
  const auto pids = split(list, ',');
  std::size_t next = 0;
  for (ProcessSpec& process : scenario.processes) {
    auto found = replaced.find(process.pid);
    if (found == replaced.end()) {
      if (next == pids.size()) continue;
      const auto pid = to_integer(trim(pids[next++]));
      if (!pid || *pid < 1 || *pid > 4'194'304) return complain("GPUWRIGHT_SIMULATE_PIDS: write \"71,72\"");
      found = replaced.emplace(process.pid, *pid).first;
    }
    if (process.pid_here == process.pid) process.pid_here = found->second;
    process.pid = found->second;
  }
}

void count_into(const std::string& path, Host::State& state) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  void* page = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(std::int64_t)) == 0)
    page = mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED)
    complain("GPUWRIGHT_SIMULATE_COUNT: " + path + ": " + std::strerror(errno));
  else
    state.also_counted = static_cast<std::atomic<std::int64_t>*>(page);
  if (file >= 0) close(file);
}

// A scenario that cannot be read leaves no host: then there is no driver, and standard error says why.
std::shared_ptr<Host> make_host() {
  const std::string name = variable("GPUWRIGHT_SIMULATE");
  auto host = Host::from_scenario(name.empty() ? default_scenario() : name);
  if (!host) {
    complain(host.error().message());
    return nullptr;
  }
  if (const std::string pids = variable("GPUWRIGHT_SIMULATE_PIDS"); !pids.empty())
    replace_pids(pids, (*host)->state().scenario);
  if (const std::string time = variable("GPUWRIGHT_SIMULATE_TIME"); !time.empty()) {
    if (const auto seconds = to_number(time))
      (*host)->set_time(*seconds);
    else
      complain("GPUWRIGHT_SIMULATE_TIME: write a number of seconds");
  }
  if (const std::string path = variable("GPUWRIGHT_SIMULATE_COUNT"); !path.empty()) count_into(path, (*host)->state());
  return std::move(*host);
}

__attribute__((constructor)) void load() {
  install_nvml_when_asked(make_host);
}

}  // namespace
}  // namespace gpuwright::sim

// The scenario's name.
extern "C" __attribute__((visibility("default"))) const char* gpuwright_simulation() {
  static const std::string name = [] {
    const std::string asked = gpuwright::sim::variable("GPUWRIGHT_SIMULATE");
    return asked.empty() ? std::string(gpuwright::sim::default_scenario()) : asked;
  }();
  return name.c_str();
}
