// gpuwright topo: how the GPUs are joined, and by which number CUDA knows them.
#include "cli/live/topo.h"

#include <chrono>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/live/live.h"

namespace gpuwright::cli {
namespace {

constexpr std::chrono::milliseconds kDeadline{3000};

Result<int> run_topo(const Arguments& arguments, const Console& console) {
  device::Wants wants;
  wants.processes = wants.process_utilization = wants.health = false;
  wants.links = true;
  auto feed = GW_TRY(open_feed(arguments, wants));
  const device::Snapshot snapshot = GW_TRY(next_snapshot(*feed));
  const bool simulated = !snapshot.simulated.empty();
  const auto environment = [&](const char* name) { return simulated ? nullptr : std::getenv(name); };
  const device::Topology topology =
      device::read_topology(GW_TRY(source_options(arguments, wants)), snapshot, kDeadline);
  const device::CudaView view =
      device::cuda_view(snapshot, environment("CUDA_VISIBLE_DEVICES"), environment("CUDA_DEVICE_ORDER"));
  if (console.json)
    console.out << topology_json(snapshot, topology, view).dump() << '\n';
  else if (!snapshot.gpus.empty())
    print_topology(snapshot, topology, view, console);
  return report_missing(snapshot, console);
}

}  // namespace

Command topo_command() {
  return {"topo",
          "Show how the GPUs are joined to each other, to CPUs and to CUDA's numbers",
          "The matrix of nvidia-smi topo -m for GPUs of every vendor: NVLinks where there are some, else what lies "
          "between two GPUs on PCI Express. Then the numbers by which a GPU is known: CUDA counts by speed unless "
          "CUDA_DEVICE_ORDER=PCI_BUS_ID is set, and CUDA_VISIBLE_DEVICES counts anew.",
          {},
          live_options(Replay::no),
          {{"gpuwright topo", "of this machine"},
           {"CUDA_VISIBLE_DEVICES=3,1 gpuwright topo", "what a program would see with it"},
           {"gpuwright topo --simulate", "what it looks like on a machine with GPUs"}},
          {"0  done", "3  no GPU answers: none was found, or none has a driver"},
          run_topo};
}

}  // namespace gpuwright::cli
