// What NCCL is told to use, and whether it is there.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/checks.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

// NCCL_SOCKET_IFNAME and NCCL_IB_HCA: "^docker,lo" leaves these out, "=eth0" means exactly that one, else a name
// stands for all that begin so (NCCL user guide, environment variables). A port may follow: "mlx5_0:1".
bool matches_one(std::string_view wish, const std::vector<std::string>& names) {
  const bool excluded = wish.starts_with('^');
  if (excluded) wish.remove_prefix(1);
  const bool exact = wish.starts_with('=');
  if (exact) wish.remove_prefix(1);
  const auto wished = split(wish, ',');
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const bool listed = std::any_of(wished.begin(), wished.end(), [&](std::string_view one) {
      one = one.substr(0, one.find(':'));
      return exact ? name == one : name.starts_with(one);
    });
    return listed != excluded;
  });
}

Outcome check_interface(const Machine& machine) {
  const Host& host = machine.host();
  if (!host.environment_known()) return unknown("the environment is not known");
  const auto names = host.names("/sys/class/net");
  if (names.empty()) return unknown("/sys/class/net cannot be listed");
  Outcome outcome = not_applicable("not set: NCCL chooses");
  for (const char* variable : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const auto wish = host.variable(variable);
    if (!wish || trim(*wish).empty()) continue;
    if (outcome.state == State::not_applicable) outcome = fine(*wish);
    if (!matches_one(trim(*wish), names))
      outcome.wrong("nccl.interface")
          .fact("variable", variable)
          .fact("value", *wish)
          .fact("interfaces", fmt::format("{}", fmt::join(names, ", ")))
          .seen(variable, *wish);
    else if (*wish == "lo" || *wish == "=lo" || wish->starts_with("docker"))
      outcome.wrong("nccl.loopback").fact("variable", variable).fact("value", *wish).seen(variable, *wish);
  }
  return outcome;
}

Outcome check_hca(const Machine& machine) {
  const Host& host = machine.host();
  if (!host.environment_known()) return unknown("the environment is not known");
  const auto wish = host.variable("NCCL_IB_HCA");
  if (!wish || trim(*wish).empty()) return not_applicable("NCCL_IB_HCA is not set");
  const auto names = host.names("/sys/class/infiniband");
  if (host.variable("NCCL_IB_DISABLE").value_or("0") == "1") return not_applicable("NCCL_IB_DISABLE=1");
  if (matches_one(trim(*wish), names)) return fine(*wish);
  Outcome outcome;
  outcome.wrong("nccl.hca")
      .fact("value", *wish)
      .fact("adapters", names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")))
      .seen("NCCL_IB_HCA", *wish);
  return outcome;
}

// "4: ACTIVE" of .../ports/1/state.
Outcome check_ports(const Machine& machine) {
  const Host& host = machine.host();
  const auto adapters = host.names("/sys/class/infiniband");
  if (adapters.empty()) return not_applicable("no InfiniBand or RoCE adapter");
  Outcome outcome = fine();
  int active = 0;
  for (const std::string& adapter : adapters)
    for (const std::string& port : host.names("/sys/class/infiniband/" + adapter + "/ports")) {
      const std::string path = fmt::format("/sys/class/infiniband/{}/ports/{}/state", adapter, port);
      const auto state = host.value(path);
      if (!state) continue;
      if (state->find("ACTIVE") != std::string::npos)
        ++active;
      else
        outcome.wrong("nccl.port").item("ports", fmt::format("{} port {}", adapter, port)).seen(path, *state);
    }
  if (outcome.state == State::wrong && active > 0) outcome.problems.front().fact("active", active);
  return outcome;
}

// GPUDirect RDMA goes by nvidia_peermem, or by dma-buf with the open module and Linux 5.12.
Outcome check_peer_memory(const Machine& machine) {
  if (machine.gpus_of(Vendor::nvidia).empty()) return not_applicable("no NVIDIA GPU");
  if (machine.host().names("/sys/class/infiniband").empty()) return not_applicable("no InfiniBand or RoCE adapter");
  const auto loaded = machine.module_loaded("nvidia_peermem");
  if (!loaded) return unknown("/proc/modules cannot be read");
  if (*loaded) return fine("nvidia_peermem");
  if (machine.nvidia().open.value_or(false)) return fine("dma-buf, with the open module");
  Outcome outcome;
  outcome.wrong("nccl.peermem").seen("/proc/modules", "nvidia_peermem is not there");
  return outcome;
}

Outcome check_switched_off(const Machine& machine) {
  const Host& host = machine.host();
  if (!host.environment_known()) return unknown("the environment is not known");
  if (machine.gpus_of(Vendor::nvidia).size() < 2) return not_applicable("one GPU");
  Outcome outcome = fine();
  for (const char* variable : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"})
    if (host.variable(variable).value_or("0") == "1")
      outcome.wrong("nccl.disabled").item("variables", variable).seen(variable, "1");
  return outcome;
}

}  // namespace

std::vector<Check> communication_checks() {
  return {{"nccl.interface", Layer::communication, check_interface},
          {"nccl.hca", Layer::communication, check_hca},
          {"nccl.port", Layer::communication, check_ports},
          {"nccl.peermem", Layer::communication, check_peer_memory, Check::Use::both},
          {"nccl.disabled", Layer::communication, check_switched_off, Check::Use::both}};
}

}  // namespace gpuwright::doctor
