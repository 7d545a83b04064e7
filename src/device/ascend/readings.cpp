#include "device/ascend/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device::dcmi {
namespace {

constexpr std::int64_t kMib = 1 << 20;

Reading<Bytes> bytes_of(unsigned long long count, std::int64_t unit) {
  if (count > static_cast<unsigned long long>(INT64_MAX)) return Why::implausible;
  const auto bytes = checked_multiply(static_cast<std::int64_t>(count), unit);
  return bytes ? Reading<Bytes>(Bytes{*bytes}) : Why::implausible;
}

std::string name_of(const ChipInfo& chip) {
  const std::string type = text_of(chip.type), name = text_of(chip.name);
  return type.empty() || name.starts_with(type) ? name : type + " " + name;
}

// "Ascend 910B3" is a bin of the catalogue's "Ascend 910B".
std::string catalog_id_of(const std::string& name) {
  const catalog::Catalog* catalog = known_gpus();
  if (catalog == nullptr) return {};
  for (const catalog::Accelerator& row : catalog->accelerators()) {
    if (row.vendor != "Huawei" || !name.starts_with(row.name)) continue;
    const std::string_view rest = std::string_view(name).substr(row.name.size());
    if (rest.empty() || (rest.size() == 1 && rest[0] >= '0' && rest[0] <= '9')) return row.id;
  }
  return {};
}

Reading<Ratio> rate(Asker& asker, Rate which) {
  unsigned percent = 0;
  const int code =
      asker.ask("dcmi_get_device_utilization_rate", asker.library().utilization, static_cast<int>(which), &percent);
  if (code != kOk) return why_of_code(code);
  return plausible(Ratio{percent / 100.0});
}

Reading<Hertz> clock(Asker& asker, Frequency which) {
  unsigned megahertz = 0;
  const int code = asker.ask("dcmi_get_device_frequency", asker.library().frequency, which, &megahertz);
  if (code != kOk) return why_of_code(code);
  return plausible(Hertz{megahertz * 1e6});
}

// "80e01801 (text), ..." of the present faults.
std::string fault_codes(Asker& asker) {
  constexpr int kMostCodes = 128, kMostShown = 4;
  std::array<unsigned, kMostCodes> codes{};
  int count = 0;
  if (asker.ask("dcmi_get_device_errorcode_v2", asker.library().error_codes, &count, codes.data(),
                unsigned{kMostCodes}) != kOk)
    return {};
  std::string text;
  for (int i = 0; i < std::min({count, kMostCodes, kMostShown}); ++i) {
    std::array<unsigned char, 256> words{};
    const unsigned code = codes[static_cast<std::size_t>(i)];
    text += fmt::format("{}{:x}", text.empty() ? "" : ", ", code);
    if (asker.ask("dcmi_get_device_errorcode_string", asker.library().error_text, code, words.data(),
                  static_cast<int>(words.size()) - 1) == kOk)
      text += fmt::format(" ({})", trim(reinterpret_cast<const char*>(words.data())));
  }
  return text;
}

}  // namespace

void read_identity(Asker& asker, Gpu& gpu) {
  ChipInfo chip{};
  int code = asker.ask("dcmi_get_device_chip_info", asker.library().chip_info, &chip);
  gpu.name = code == kOk ? Reading<std::string>(name_of(chip)) : why_of_code(code);
  if (gpu.name) gpu.catalog_id = catalog_id_of(*gpu.name);
  PcieInfo pci{};
  code = asker.ask("dcmi_get_device_pcie_info_v2", asker.library().pcie_info, &pci);
  if (code == kOk && pci.domain >= 0 && pci.bus <= 0xff && pci.slot <= 0x1f && pci.function <= 7) {
    gpu.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.{}", pci.domain, pci.bus, pci.slot, pci.function);
    gpu.pci_id = fmt::format("{:04x}:{:04x}", pci.vendor & 0xffff, pci.device & 0xffff);
  } else {
    gpu.pci_address = code == kOk ? Why::implausible : why_of_code(code);
    gpu.pci_id = gpu.pci_address.why();
  }
  int logic_id = 0;
  code = asker.call("dcmi_get_device_logic_id", asker.library().logic_id, &logic_id, asker.place().card,
                    asker.place().chip);
  gpu.device_minor = code == kOk && logic_id >= 0 ? Reading<std::int64_t>(logic_id) : why_of_code(code);
}

// HBM where the device has it, else DDR, of which the driver tells only the share that is used.
void read_memory(Asker& asker, Gpu& gpu) {
  const auto set = [&](Reading<Bytes> total, Reading<Bytes> used) {
    gpu.memory_total = total;
    gpu.memory_used = used;
    gpu.memory_free = total ? used.why() : total.why();
    if (!total || !used) return;
    if (*used > *total)
      gpu.memory_used = gpu.memory_free = Why::implausible;
    else
      gpu.memory_free = *total - *used;
  };
  HbmInfo hbm{};
  int code = asker.ask("dcmi_get_device_hbm_info", asker.library().hbm_info, &hbm);
  std::int64_t unit = kMib;
  if (code != kOk) {
    code = asker.ask("dcmi_get_hbm_info", asker.library().hbm_info_in_kb, &hbm);
    unit = 1024;
  }
  if (code == kOk && hbm.size > 0) {
    set(bytes_of(hbm.size, unit), bytes_of(hbm.used, unit));
    gpu.memory_temperature = plausible(Celsius{static_cast<double>(hbm.temperature)});
    gpu.memory_clock = plausible(Hertz{hbm.frequency * 1e6});
    return;
  }
  MemoryInfoV3 ddr3{};
  MemoryInfo ddr{};
  code = asker.ask("dcmi_get_device_memory_info_v3", asker.library().memory_info_v3, &ddr3);
  if (code == kOk)
    ddr = {ddr3.size, ddr3.frequency, ddr3.used_percent};
  else
    code = asker.ask("dcmi_get_device_memory_info_v2", asker.library().memory_info, &ddr);
  if (code != kOk || ddr.size == 0) {
    const Why why = code == kOk ? Why::no_data : why_of_code(code);
    return set(why, why);
  }
  const Reading<Bytes> total = bytes_of(ddr.size, kMib);
  Reading<Bytes> used = total ? Why::implausible : total.why();
  if (total && ddr.used_percent <= 100) used = total->scaled(ddr.used_percent / 100.0);
  set(total, used);
  gpu.memory_clock = plausible(Hertz{ddr.frequency * 1e6});
}

void read_sensors(Asker& asker, Gpu& gpu) {
  gpu.utilization = rate(asker, Rate::ai_core);
  gpu.memory_utilization = rate(asker, Rate::hbm_bandwidth);
  if (!gpu.memory_utilization) gpu.memory_utilization = rate(asker, Rate::ddr_bandwidth);
  gpu.sm_clock = clock(asker, Frequency::ai_core);
  gpu.sm_clock_max = clock(asker, Frequency::ai_core_max);
  int value = 0;
  int code = asker.ask("dcmi_get_device_temperature", asker.library().temperature, &value);
  gpu.temperature = code == kOk ? plausible(Celsius{static_cast<double>(value)}) : why_of_code(code);
  code = asker.ask("dcmi_get_device_power_info", asker.library().power, &value);
  gpu.power = code == kOk ? plausible(Watts{value / 10.0}) : why_of_code(code);  // told in 0.1 W
}

void read_ecc(Asker& asker, Gpu& gpu) {
  EccInfo ecc{};
  int code = asker.ask("dcmi_get_device_ecc_info", asker.library().ecc_info, EccOf::hbm, &ecc);
  if (code != kOk) code = asker.ask("dcmi_get_device_ecc_info", asker.library().ecc_info, EccOf::ddr, &ecc);
  const Why why = why_of_code(code);
  const auto count = [&](unsigned value) { return code == kOk ? Reading<std::int64_t>(value) : why; };
  gpu.ecc_enabled = code == kOk ? Reading<bool>(ecc.enabled != 0) : why;
  gpu.ecc_corrected_volatile = count(ecc.single_bit);
  gpu.ecc_uncorrected_volatile = count(ecc.double_bit);
  gpu.ecc_corrected_aggregate = count(ecc.all_single_bit);
  gpu.ecc_uncorrected_aggregate = count(ecc.all_double_bit);
  gpu.retired_pages_corrected = count(ecc.single_bit_pages);
  gpu.retired_pages_uncorrected = count(ecc.double_bit_pages);
}

void judge(Asker& asker, Gpu& gpu) {
  unsigned health = 0;
  const int code = asker.ask("dcmi_get_device_health", asker.library().health, &health);
  if (code == kNoSuchDevice || (code == kOk && health == 0xffff'ffff)) {
    gpu.state = State::lost;
    gpu.state_detail = "the driver says that the device does not exist";
  } else if (code == kNotPermitted) {
    gpu.state = State::no_permission;
    gpu.state_detail = "the driver refuses this user; join the group HwHiAiUser or run as root";
  } else if (code != kOk && code != kNotSupported && code != kNotInContainer) {
    gpu.state = State::failed;
    gpu.state_detail = fmt::format("dcmi_get_device_health answers {}", code);
  } else if (code == kOk && health > 0) {
    const std::string codes = fault_codes(asker);
    const std::string alarm = health == 1 ? "minor alarm" : health == 2 ? "major alarm" : "critical alarm";
    if (health >= 2) gpu.state = State::failed;
    gpu.state_detail = codes.empty() ? alarm : alarm + ": " + codes;
  }
}

void read_processes(Asker& asker, std::size_t position, Snapshot& snapshot) {
  // Older drivers fill in what they have, whatever the limit says: twice the room.
  std::array<ProcessMemory, 2 * kMostProcesses> found{};
  int count = 0;
  if (asker.ask("dcmi_get_device_resource_info", asker.library().processes, found.data(), &count) != kOk) return;
  for (int i = 0; i < std::min(count, static_cast<int>(found.size())); ++i) {
    const ProcessMemory& one = found[static_cast<std::size_t>(i)];
    if (one.pid <= 0) continue;
    Process process;
    process.gpu = static_cast<int>(position);
    process.pid = one.pid;
    process.kind = process_kind::kCompute;
    process.memory = bytes_of(one.bytes, 1);
    process.gpu_instance = process.compute_instance = Why::not_supported;
    process.sm_utilization = process.memory_utilization = Why::not_supported;
    process.encoder_utilization = process.decoder_utilization = Why::not_supported;
    snapshot.processes.push_back(std::move(process));
  }
}

}  // namespace gpuwright::device::dcmi
