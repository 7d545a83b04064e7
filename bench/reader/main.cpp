// reader [SCENARIO [READS]]: what a reading of a simulated host costs through the collector: wall time of the first and
// of the others, CPU time and memory of both processes, calls to the vendor's library, and what a recorded frame takes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "device/frame.h"
#include "device/reader.h"
#include "sim/host.h"

namespace {

using namespace gpuwright;  // NOLINT: a program of one file

double milliseconds_of(const auto& duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// A figure of /proc/PID/status in KiB.
long status_kib(int pid, const std::string& key) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return std::stol(line.substr(key.size() + 1));
  return 0;
}
// What both have only for themselves is counted once; pages that they share are counted in each RSS.
long proportional_kib(int pid) {
  std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(rollup, line);)
    if (line.starts_with("Pss:")) return std::stol(line.substr(4));
  return 0;
}
double cpu_ms(int pid) {
  std::ifstream stat(fmt::format("/proc/{}/schedstat", pid));
  double nanoseconds = 0;
  stat >> nanoseconds;
  return nanoseconds / 1e6;
}

}  // namespace

int main(int count, char** words) {
  const std::string scenario = count > 1 ? words[1] : sim::default_scenario();
  const int reads = count > 2 ? std::max(std::stoi(words[2]), 2) : 200;
  auto host = sim::Host::from_scenario(scenario);
  if (!host) return fmt::print(stderr, "{}\n", host.error().message()), 2;
  device::ReaderOptions options;
  options.sources.simulated = *host;
  std::vector<double> walls;
  const auto start = std::chrono::steady_clock::now();
  device::Reader reader(options);
  device::Snapshot snapshot;
  std::int64_t first_calls = 0;
  for (int i = 0; i < reads; ++i) {
    const auto before = i == 0 ? start : std::chrono::steady_clock::now();
    snapshot = reader.read();
    walls.push_back(milliseconds_of(std::chrono::steady_clock::now() - before));
    if (i == 0) first_calls = snapshot.vendor_calls;
  }
  const int child = reader.collector_pid(), self = ::getpid();
  fmt::print("{}: {} GPUs, {} processes\n", scenario, snapshot.gpus.size(), snapshot.processes.size());
  fmt::print("first reading: {:.2f} ms, {} vendor calls\n", walls[0], first_calls);
  std::sort(walls.begin() + 1, walls.end());
  fmt::print("others: median {:.2f} ms, 95 % {:.2f} ms, {} vendor calls\n", walls[walls.size() / 2],
             walls[walls.size() * 95 / 100], snapshot.vendor_calls);
  fmt::print("CPU a reading: {:.3f} ms here, {:.3f} ms in the collector\n", cpu_ms(self) / reads,
             cpu_ms(child) / reads);
  fmt::print("RSS: {} KiB here, {} KiB in the collector; together without what they share {} KiB\n",
             status_kib(self, "VmRSS"), status_kib(child, "VmRSS"), proportional_kib(self) + proportional_kib(child));
  fmt::print("a frame: {} bytes\n", device::encode_frame(snapshot).size());
  return 0;
}
