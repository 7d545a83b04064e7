#include "sim/scenario_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "sim/gpu_facts.h"

namespace gpuwright::sim {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr Range kShare{0, 1};
constexpr Range kMebibytes{0, 4e6};
constexpr Range kMegahertz{0, 20'000};
constexpr Range kWatts{0, 10'000};
constexpr Range kCelsius{-50, 200};
constexpr Range kRate{0, 2e6};  // MB/s
constexpr Range kSeconds{0, 1e9};
constexpr int kMostSlices = 7;

// A serial number as datacenter boards have them: 13 digits.
std::string serial_of(std::string_view host, int index) {
  return fmt::format("165{:010}", stable_number(host, 77 + static_cast<unsigned>(index)) % 10'000'000'000);
}

std::string vbios_of(const GpuSpec& spec) {
  const std::uint64_t number = stable_number(spec.name, 5);
  return fmt::format("{:02X}.{:02X}.{:02X}.00.{:02X}", 0x80 + spec.compute_major * 2, number & 0xff, number >> 8 & 0xff,
                     number >> 16 & 0x1f);
}

Status read_mebibytes(TomlTable& table, std::string_view key, std::int64_t& bytes) {
  if (const auto size = GW_TRY(table.number(key, kMebibytes)))
    bytes = static_cast<std::int64_t>(*size * static_cast<double>(kMebibyte));
  return {};
}

Status read_memory(TomlTable& table, GpuSpec& spec) {
  GW_TRY(read_mebibytes(table, "memory_total_mib", spec.memory_total));
  if (table.has("memory_total_mib"))
    spec.memory_reserved = std::max<std::int64_t>(0, spec.memory_total - spec.facts->usable().count);
  GW_TRY(read_mebibytes(table, "memory_reserved_mib", spec.memory_reserved));
  GW_TRY(read_mebibytes(table, "memory_other_mib", spec.memory_other));
  GW_TRY(read_mebibytes(table, "bar1_total_mib", spec.bar1_total));
  GW_TRY(read_mebibytes(table, "bar1_used_mib", spec.bar1_used));
  const int answer =
      GW_TRY(table.word("memory_info", {"told", "not supported", "zero"}, static_cast<int>(spec.memory_answer)));
  spec.memory_answer = static_cast<MemoryAnswer>(answer);
  if (spec.memory_reserved + spec.memory_other > spec.memory_total)
    return table.refuse("memory_reserved_mib and memory_other_mib are more than the memory");
  if (spec.bar1_used > spec.bar1_total) return table.refuse("bar1_used_mib is more than bar1_total_mib");
  return {};
}

Status read_curve(TomlTable& table, std::string_view key, Range range, Curve& curve, double unit = 1) {
  if (const auto found = GW_TRY(table.curve(key, range))) curve = unit == 1 ? *found : found->scaled(unit);
  return {};
}

Status read_load(TomlTable& table, GpuSpec& spec) {
  GW_TRY(read_curve(table, "load", kShare, spec.load));
  spec.memory_load = spec.load.scaled(0.6);
  spec.sm_activity = spec.load.scaled(0.85);
  spec.sm_occupancy = spec.load.scaled(0.35);
  spec.tensor_activity = spec.load.scaled(0.45);
  GW_TRY(read_curve(table, "memory_load", kShare, spec.memory_load));
  GW_TRY(read_curve(table, "sm_activity", kShare, spec.sm_activity));
  GW_TRY(read_curve(table, "sm_occupancy", kShare, spec.sm_occupancy));
  GW_TRY(read_curve(table, "tensor_activity", kShare, spec.tensor_activity));
  GW_TRY(read_curve(table, "encoder", kShare, spec.encoder));
  GW_TRY(read_curve(table, "decoder", kShare, spec.decoder));
  GW_TRY(read_curve(table, "jpeg", kShare, spec.jpeg));
  GW_TRY(read_curve(table, "ofa", kShare, spec.ofa));
  GW_TRY(read_curve(table, "pcie_sent_mb", kRate, spec.pcie_sent, 1e6));
  GW_TRY(read_curve(table, "pcie_received_mb", kRate, spec.pcie_received, 1e6));
  GW_TRY(read_curve(table, "nvlink_sent_mb", kRate, spec.nvlink_sent, 1e6));
  return read_curve(table, "nvlink_received_mb", kRate, spec.nvlink_received, 1e6);
}

// graphics_mhz = [210, 1980]: idle and full.
Status read_clock(TomlTable& table, std::string_view key, ClockSpec& clock) {
  const auto values = GW_TRY(table.integers(key, kMegahertz));
  if (values.empty()) return {};
  if (values.size() != 2 || values[0] > values[1]) return table.wrong(key, "write [idle, full], in MHz");
  clock = {static_cast<int>(values[0]), static_cast<int>(values[1])};
  return {};
}

Status read_number(TomlTable& table, std::string_view key, Range range, double& value) {
  value = GW_TRY(table.number(key, range)).value_or(value);
  return {};
}

Status read_integer(TomlTable& table, std::string_view key, Range range, int& value) {
  value = static_cast<int>(GW_TRY(table.integer(key, range)).value_or(value));
  return {};
}

Status read_board(TomlTable& table, GpuSpec& spec) {
  GW_TRY(read_clock(table, "graphics_mhz", spec.graphics_clock));
  GW_TRY(read_clock(table, "memory_mhz", spec.memory_clock));
  GW_TRY(read_clock(table, "video_mhz", spec.video_clock));
  GW_TRY(read_number(table, "idle_watts", kWatts, spec.idle_watts));
  GW_TRY(read_number(table, "busy_watts", kWatts, spec.busy_watts));
  GW_TRY(read_number(table, "power_limit_watts", kWatts, spec.power_limit));
  GW_TRY(read_number(table, "power_default_watts", kWatts, spec.power_default));
  GW_TRY(read_number(table, "power_min_watts", kWatts, spec.power_min));
  GW_TRY(read_number(table, "power_max_watts", kWatts, spec.power_max));
  GW_TRY(read_number(table, "idle_celsius", kCelsius, spec.idle_celsius));
  GW_TRY(read_number(table, "busy_celsius", kCelsius, spec.busy_celsius));
  GW_TRY(read_integer(table, "slowdown_celsius", kCelsius, spec.slowdown_celsius));
  GW_TRY(read_integer(table, "shutdown_celsius", kCelsius, spec.shutdown_celsius));
  GW_TRY(read_integer(table, "fans", {0, 8}, spec.fans));
  GW_TRY(read_integer(table, "pcie_generation_max", {1, 7}, spec.pcie_generation_max));
  GW_TRY(read_integer(table, "pcie_width_max", {1, 16}, spec.pcie_width_max));
  spec.pcie_generation = spec.pcie_generation_max;
  spec.pcie_width = spec.pcie_width_max;
  GW_TRY(read_integer(table, "pcie_generation", {1, 7}, spec.pcie_generation));
  GW_TRY(read_integer(table, "pcie_width", {1, 16}, spec.pcie_width));
  GW_TRY(read_integer(table, "nvlinks", {0, 18}, spec.nvlinks));
  spec.nvlink = static_cast<NvlinkShape>(
      GW_TRY(table.word("nvlink", {"none", "nvswitch", "mesh", "pairs"}, static_cast<int>(spec.nvlink))));
  spec.memory_temperature = GW_TRY(table.flag("memory_temperature")).value_or(spec.memory_temperature);
  return {};
}

Status read_modes(TomlTable& table, GpuSpec& spec) {
  if (const auto ecc = GW_TRY(table.flag("ecc"))) spec.ecc = ecc;
  spec.row_remapping = GW_TRY(table.flag("row_remapping")).value_or(spec.row_remapping);
  spec.persistence = GW_TRY(table.flag("persistence")).value_or(spec.persistence);
  spec.display = GW_TRY(table.flag("display")).value_or(spec.display);
  spec.compute_mode =
      GW_TRY(table.word("compute_mode", {"default", "exclusive thread", "prohibited", "exclusive process"}, 0));
  spec.mig = GW_TRY(table.flag("mig")).value_or(false);
  if (spec.mig && spec.facts->mig_profiles.empty())
    return table.wrong("mig", fmt::format("{} cannot be cut into MIG instances", spec.name));
  return {};
}

// As drivers number them: 7g is 0, 3g and 4g begin at 1, 2g at 3, 1g at 7.
int first_instance_id(int slices) {
  return slices >= 7 ? 0 : slices >= 3 ? 1 : slices == 2 ? 3 : 7;
}

Result<MigSpec> read_instance(TomlTable& table, const GpuSpec& gpu) {
  const auto name = GW_TRY(table.text("profile"));
  std::vector<std::string> names;
  for (const auto& profile : gpu.facts->mig_profiles) names.push_back(profile.name);
  if (!name) return table.refuse(fmt::format("a MIG instance needs a profile: {}", fmt::join(names, ", ")));
  const int at = GW_TRY(table.word("profile", names, 0));
  MigSpec instance;
  instance.profile = gpu.facts->mig_profiles[static_cast<std::size_t>(at)];
  instance.slices = std::clamp(static_cast<int>(to_integer(name->substr(0, name->find('g'))).value_or(1)), 1, 7);
  // MIG User Guide: a slice of a GA100 has 14 multiprocessors, one of a GH100 16; a whole GPU has those left over, too.
  const int all = gpu.facts->multiprocessors.value_or(0);
  const int slice = gpu.compute_major == 8 ? 14 : all / 8 / 2 * 2;
  instance.multiprocessors = instance.slices == 7 ? all : slice * instance.slices;
  GW_TRY(read_integer(table, "multiprocessors", {1, 1000}, instance.multiprocessors));
  GW_TRY(read_curve(table, "load", kShare, instance.load));
  instance.interval.start = GW_TRY(table.number("start", kSeconds)).value_or(0);
  instance.interval.end = GW_TRY(table.number("end", kSeconds)).value_or(kForever);
  instance.gpu_instance = first_instance_id(instance.slices);
  for (const MigSpec& other : gpu.instances)
    if (first_instance_id(other.slices) == first_instance_id(instance.slices)) ++instance.gpu_instance;
  return instance;
}

Status read_instances(TomlTable& table, GpuSpec& spec) {
  GW_TRY(table.tables("instance", "a MIG instance", [&spec](TomlTable& row) -> Status {
    if (!spec.mig) return row.refuse("MIG instances need mig = true");
    spec.instances.push_back(GW_TRY(read_instance(row, spec)));
    if (spec.instances.size() > 32) return row.refuse("more than 32 MIG instances");
    return {};
  }));
  for (const MigSpec& instance : spec.instances) {
    int slices = 0;
    for (const MigSpec& other : spec.instances)
      if (other.interval.holds(instance.interval.start)) slices += other.slices;
    if (slices > kMostSlices) return table.refuse("the MIG instances take more than the 7 slices that a GPU has");
  }
  return {};
}

// "0000:1b:00.0" and NVML's own "00000000:1B:00.0"
bool set_pci_address(const std::string& text, GpuSpec& spec) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int used = 0;
  if (text.size() > 20 ||
      std::sscanf(text.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 ||
      static_cast<std::size_t>(used) != text.size())
    return false;
  spec.pci_domain = domain;
  spec.pci_bus = bus;
  spec.pci_device = device;
  spec.pci_address = fmt::format("{:08X}:{:02X}:{:02X}.0", domain, bus, device);
  return true;
}

// What differs from one GPU of the table to the next.
Status set_identity(TomlTable& table, const std::vector<std::string>& uuids, const std::vector<std::string>& addresses,
                    std::size_t nth, const Scenario& scenario, GpuSpec& spec) {
  const auto index = static_cast<unsigned>(scenario.gpus.size());
  spec.uuid = uuids.empty() ? stable_uuid("GPU-", scenario.hostname, index) : uuids[nth];
  const std::string address =
      addresses.empty() ? fmt::format("{:x}:{:x}:00.0", index / 8, 0x19 * (index % 8 + 1)) : addresses[nth];
  if (!set_pci_address(address, spec)) return table.wrong("pci_addresses", "write \"0000:1b:00.0\"");
  if (spec.ecc) spec.serial = serial_of(scenario.hostname, static_cast<int>(index));
  for (std::size_t i = 0; i < spec.instances.size(); ++i) spec.instances[i].uuid = stable_uuid("MIG-", spec.uuid, i);
  return {};
}

GpuSpec later(GpuSpec spec, double seconds) {
  for (Curve* curve : {&spec.load, &spec.memory_load, &spec.encoder, &spec.decoder, &spec.jpeg, &spec.ofa,
                       &spec.sm_activity, &spec.sm_occupancy, &spec.tensor_activity, &spec.pcie_sent,
                       &spec.pcie_received, &spec.nvlink_sent, &spec.nvlink_received})
    *curve = curve->shifted(seconds);
  return spec;
}

Result<GpuSpec> read_spec(TomlTable& table) {
  const auto id = GW_TRY(table.text("id"));
  if (!id) return table.refuse("every [[gpu]] needs an id of the catalogue", "`gpuwright gpus` lists them");
  auto found = spec_from_catalog(*id);
  if (!found) return table.wrong("id", found.error().what, found.error().hint);
  GpuSpec spec = std::move(*found);
  spec.name = GW_TRY(table.text("name")).value_or(spec.name);
  spec.vbios = GW_TRY(table.text("vbios")).value_or(vbios_of(spec));
  GW_TRY(read_memory(table, spec));
  GW_TRY(read_load(table, spec));
  GW_TRY(read_board(table, spec));
  GW_TRY(read_modes(table, spec));
  GW_TRY(read_instances(table, spec));
  return spec;
}

}  // namespace

Status read_gpus(TomlTable& table, Scenario& scenario) {
  const GpuSpec spec = GW_TRY(read_spec(table));
  const auto count = static_cast<std::size_t>(GW_TRY(table.integer("count", {1, kMaxGpus})).value_or(1));
  const auto uuids = GW_TRY(table.texts("uuids")), addresses = GW_TRY(table.texts("pci_addresses"));
  const double stagger = GW_TRY(table.number("stagger", kSeconds)).value_or(0);
  if (scenario.gpus.size() + count > kMaxGpus) return table.refuse(fmt::format("more than {} GPUs", kMaxGpus));
  if (!uuids.empty() && uuids.size() != count) return table.wrong("uuids", "one a GPU is needed");
  if (!addresses.empty() && addresses.size() != count) return table.wrong("pci_addresses", "one a GPU is needed");
  for (std::size_t i = 0; i < count; ++i) {
    GpuSpec one = later(spec, stagger * static_cast<double>(i));
    GW_TRY(set_identity(table, uuids, addresses, i, scenario, one));
    scenario.gpus.push_back(std::move(one));
  }
  return {};
}

}  // namespace gpuwright::sim
