#include "device/nvml/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "device/nvml/answer.h"
#include "device/nvml/asker.h"
#include "device/nvml/host_files.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr unsigned kMostLinks = 64;
constexpr unsigned kCpuWords = 64;  // of 64 CPUs each

// Remembers which call is under way, for whoever waits.
class LastCall : public CallWatch {
 public:
  void enter(std::string_view, int, const char* call) override { call_ = call; }
  void leave() override {}
  bool forbidden(std::string_view, int) const override { return false; }
  const char* call() const { return call_; }

 private:
  std::atomic<const char*> call_{"nvmlInit_v2"};
};

struct Node {
  std::size_t position = 0;  // in Topology::gpus
  std::string address;
  int vendor_index = 0;
  nvml::Device handle = nullptr;
};

Reading<Path> path_of(nvml::Return code, nvml::TopologyLevel level) {
  if (code != nvml::kSuccess) return why_of(code);
  switch (level) {
    case nvml::kTopologyInternal:
      return Path::same_board;
    case nvml::kTopologySingle:
      return Path::one_switch;
    case nvml::kTopologyMultiple:
      return Path::switches;
    case nvml::kTopologyHostBridge:
      return Path::host_bridge;
    case nvml::kTopologyNode:
      return Path::numa_node;
    case nvml::kTopologySystem:
      return Path::system;
  }
  return Why::implausible;
}

Reading<bool> can(Asker& ask, const Node& a, const Node& b, nvml::P2pCapability capability) {
  auto status = nvml::kP2pUnknown;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetP2PStatus, a.handle, b.handle, capability, &status);
  if (code != nvml::kSuccess) return why_of(code);
  if (status == nvml::kP2pUnknown) return Why::no_data;
  return status == nvml::kP2pOk;
}

// "0-55,112-167" of the words of a mask.
std::string ranges_of(const std::array<unsigned long, kCpuWords>& words) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  const auto has = [&words](unsigned cpu) {
    return cpu < kCpuWords * kBits && (words[cpu / kBits] >> (cpu % kBits) & 1UL) != 0;
  };
  std::string text;
  for (unsigned cpu = 0; cpu < kCpuWords * kBits; ++cpu) {
    if (!has(cpu)) continue;
    const unsigned first = cpu;
    while (has(cpu + 1)) ++cpu;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (cpu != first) text += fmt::format("-{}", cpu);
  }
  return text;
}

void read_cpus(Asker& ask, const Node& node, TopologyGpu& gpu) {
  if (gpu.cpus) return;
  std::array<unsigned long, kCpuWords> words{};
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetCpuAffinity, node.handle, kCpuWords, words.data());
  const std::string text = ranges_of(words);
  if (code != nvml::kSuccess)
    gpu.cpus = why_of(code);
  else
    gpu.cpus = text.empty() ? Reading<std::string>(Why::no_data) : Reading<std::string>(text);
}

// Which address each link leads to; "" for a switch.
void read_links(Asker& ask, const Node& node, TopologyGpu& gpu, std::map<std::string, std::int64_t>& neighbours) {
  const Functions& f = ask.functions();
  std::int64_t up = 0, to_switch = 0;
  for (unsigned link = 0; link < kMostLinks && ask.fine(); ++link) {
    nvml::EnableState active = 0;
    const nvml::Return code = ask(f.nvmlDeviceGetNvLinkState, node.handle, link, &active);
    if (code != nvml::kSuccess) {
      if (link == 0 && code != nvml::kInvalidArgument) {
        gpu.links = gpu.links_to_switch = why_of(code);
        return;
      }
      break;
    }
    if (active == 0) continue;
    ++up;
    auto type = nvml::kNvLinkUnknown;
    ask(f.nvmlDeviceGetNvLinkRemoteDeviceType, node.handle, link, &type);
    if (type == nvml::kNvLinkSwitch) {
      ++to_switch;
      continue;
    }
    nvml::PciInfo pci{};
    nvml::Return told = ask(f.nvmlDeviceGetNvLinkRemotePciInfo_v2, node.handle, link, &pci);
    if (try_the_older(told)) told = ask(f.nvmlDeviceGetNvLinkRemotePciInfo, node.handle, link, &pci);
    if (const auto address = text(told, pci.bus_id, sizeof pci.bus_id)) ++neighbours[short_address(*address)];
  }
  gpu.links = up;
  gpu.links_to_switch = to_switch;
}

nvml::Return get_handle(Asker& ask, Node& node, bool some_sleep) {
  const Functions& f = ask.functions();
  nvml::Return code = ask(f.nvmlDeviceGetHandleByPciBusId_v2, node.address.c_str(), &node.handle);
  if (code == nvml::kFunctionNotFound) code = ask(f.nvmlDeviceGetHandleByPciBusId, node.address.c_str(), &node.handle);
  if (code == nvml::kSuccess || some_sleep) return code;
  const auto index = static_cast<unsigned>(node.vendor_index);
  code = ask(f.nvmlDeviceGetHandleByIndex_v2, index, &node.handle);
  return code == nvml::kFunctionNotFound ? ask(f.nvmlDeviceGetHandleByIndex, index, &node.handle) : code;
}

void read_pair(Asker& ask, const Node& a, const Node& b, TopologyPair& pair) {
  auto level = nvml::kTopologySystem;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetTopologyCommonAncestor, a.handle, b.handle, &level);
  const Reading<Path> path = path_of(code, level);
  // What the library tells wins: it knows of boards with two chips.
  if (path || !pair.path) pair.path = path;
  pair.peer_read = can(ask, a, b, nvml::kP2pRead);
  pair.peer_write = can(ask, a, b, nvml::kP2pWrite);
  pair.peer_atomics = can(ask, a, b, nvml::kP2pAtomics);
  pair.peer_over_links = can(ask, a, b, nvml::kP2pNvLink);
}

TopologyPair* find_pair(Topology& topology, int a, int b) {
  const auto found = std::find_if(topology.pairs.begin(), topology.pairs.end(),
                                  [low = std::min(a, b), high = std::max(a, b)](const TopologyPair& pair) {
                                    return pair.a == low && pair.b == high;
                                  });
  return found == topology.pairs.end() ? nullptr : &*found;
}

void read_all(Asker& ask, std::vector<Node>& nodes, bool some_sleep, Topology& topology) {
  std::vector<std::map<std::string, std::int64_t>> neighbours(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ask.turn_to(nodes[i].vendor_index);
    TopologyGpu& gpu = topology.gpus[nodes[i].position];
    if (get_handle(ask, nodes[i], some_sleep) != nvml::kSuccess) {
      nodes[i].handle = nullptr;
      continue;
    }
    read_cpus(ask, nodes[i], gpu);
    read_links(ask, nodes[i], gpu, neighbours[i]);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t k = i + 1; k < nodes.size(); ++k) {
      TopologyPair* pair =
          find_pair(topology, topology.gpus[nodes[i].position].index, topology.gpus[nodes[k].position].index);
      if (pair == nullptr || nodes[i].handle == nullptr || nodes[k].handle == nullptr) continue;
      ask.turn_to(nodes[i].vendor_index);
      read_pair(ask, nodes[i], nodes[k], *pair);
      const TopologyGpu& gpu = topology.gpus[nodes[i].position];
      pair->links = gpu.links ? Reading<std::int64_t>(neighbours[i][nodes[k].address]) : gpu.links;
    }
}

struct Job {
  SourceOptions options;
  std::vector<Node> nodes;
  bool some_sleep = false;
  Topology topology;
  LastCall watch;
  std::promise<void> done;

  void run() {
    const Library library(options);
    if (library.open()) {
      Asker ask(library, watch);
      nvml::Return code = ask(library.functions().nvmlInit_v2);
      if (code == nvml::kFunctionNotFound) code = ask(library.functions().nvmlInit);
      if (code == nvml::kSuccess) {
        read_all(ask, nodes, some_sleep, topology);
        ask(library.functions().nvmlShutdown);
      } else {
        topology.note = fmt::format("nvmlInit: {}", library.text_of(code));
      }
    }
    done.set_value();
  }
};

}  // namespace

void add_topology(const SourceOptions& options, const Snapshot& snapshot, std::chrono::milliseconds deadline,
                  Topology& topology) {
  // Shared with the thread, which is left behind when the driver hangs.
  const auto job = std::make_shared<Job>();
  job->options = options;
  job->topology = topology;
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) {
    const Gpu& gpu = snapshot.gpus[i];
    job->some_sleep = job->some_sleep || gpu.state == State::asleep;
    if (gpu.source == "nvml" && (gpu.state == State::ok || gpu.state == State::needs_reset) && gpu.pci_address)
      job->nodes.push_back({i, *gpu.pci_address, gpu.vendor_index});
  }
  if (job->nodes.empty()) return;
  std::future<void> done = job->done.get_future();
  std::thread([job] { job->run(); }).detach();
  if (done.wait_for(deadline) == std::future_status::ready)
    topology = std::move(job->topology);
  else
    topology.note = fmt::format("{} did not answer in {} ms", job->watch.call(), deadline.count());
}

}  // namespace gpuwright::device::nvidia
