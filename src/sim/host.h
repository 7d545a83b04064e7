// A simulated host: GPUs, their load, their processes and their faults as a function of time, from a scenario. It
// stands in where a machine has no GPU, for trying things out and for tests, and everything that comes from it says so.
// Umbrella of the room: what a scenario file holds (scenario.h), and NVIDIA's library as a Host speaks it (nvml.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::sim {

// What /proc would tell of a simulated process.
struct ProcessFacts {
  std::string user, command, executable, cgroup;  // cgroup: the text of /proc/PID/cgroup
  std::int64_t started_unix_ns = 0;
  std::int64_t host_memory_bytes = 0;
  double cpu_cores = 0;                  // what it uses now
  std::optional<std::int64_t> pid_here;  // in the namespace of the reader; nothing where it is not visible
};

// Thread-safe. Time starts when the host is made; a forked child goes on with the same clock.
class Host {
 public:
  // A built-in scenario by name ("8xh100", see built_in_scenarios()), or the path of a scenario file.
  static Result<std::shared_ptr<Host>> from_scenario(const std::string& name_or_path);
  static Result<std::shared_ptr<Host>> from_toml(std::string_view text, const std::string& name);

  const std::string& name() const;
  const std::string& hostname() const;
  // Stops the clock at so many seconds after the start: tests ask for the state of a moment.
  void set_time(double seconds);
  double time() const;
  std::optional<ProcessFacts> process(std::int64_t pid) const;
  // What a file of the host's kernel holds: /proc/driver/nvidia/version, /proc/meminfo, and of the GPUs'
  // /sys/bus/pci/devices/ADDRESS: vendor, device, class, numa_node, power/runtime_status. Nothing: there is no such
  // file.
  std::optional<std::string> file(std::string_view path) const;
  // Names of the entries of /sys/bus/pci/devices; empty for all else.
  std::vector<std::string> files_in(std::string_view path) const;
  // Calls that NVML's functions answered for one GPU: what must stay 0 where a sleeping one is not to be woken.
  std::int64_t calls_for_gpu(int index) const;

  ~Host();
  struct State;
  State& state() const { return *state_; }

 private:
  explicit Host(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct BuiltInScenario {
  std::string name, summary;
};
std::vector<BuiltInScenario> built_in_scenarios();  // data/scenarios/*.toml
std::vector<std::string> built_in_names();          // their names alone, without reading them
std::string default_scenario();                     // "8xh100"

}  // namespace gpuwright::sim
