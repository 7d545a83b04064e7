// Huawei's Ascend devices by DCMI, the library of their driver.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "device/ascend/library.h"
#include "device/source.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device {
namespace {

constexpr const char* kName = "dcmi";
constexpr std::int64_t kTryAgainAfter = 30'000'000'000;  // ns
constexpr int kMostChips = 16;                           // of a card
constexpr std::int64_t kMib = 1 << 20;

// Text of a fixed field, which need not end with a NUL.
template <class Char, std::size_t N>
std::string text_of(const Char (&field)[N]) {
  std::string text;
  for (const Char c : field) {
    if (c == 0) break;
    text += static_cast<char>(c);
  }
  return std::string(trim(text));
}

Reading<Bytes> bytes_of(unsigned long long count, std::int64_t unit) {
  if (count > static_cast<unsigned long long>(INT64_MAX)) return Why::implausible;
  const auto bytes = checked_multiply(static_cast<std::int64_t>(count), unit);
  return bytes ? Reading<Bytes>(Bytes{*bytes}) : Why::implausible;
}

struct Place {
  int card = 0, chip = 0;
  bool operator==(const Place&) const = default;
};

// Calls to one device, each told to the watch and counted.
class Asker {
 public:
  Asker(const dcmi::Library& library, Snapshot& snapshot, CallWatch& watch)
      : library_(library), snapshot_(snapshot), watch_(watch) {}

  void set_device(int index, Place place) {
    index_ = index;
    place_ = place;
  }
  const dcmi::Library& library() const { return library_; }
  const Place& place() const { return place_; }

  // The code of the call, kNotSupported where the library lacks it.
  template <class Function, class... Arguments>
  int call(const char* name, Function function, Arguments... arguments) {
    if (function == nullptr) return dcmi::kNotSupported;
    watch_.enter(kName, index_, name);
    const int code = function(arguments...);
    watch_.leave();
    ++snapshot_.vendor_calls;
    return code;
  }
  // `function` of this device.
  template <class Function, class... Arguments>
  int ask(const char* name, Function function, Arguments... arguments) {
    return call(name, function, place_.card, place_.chip, arguments...);
  }

 private:
  const dcmi::Library& library_;
  Snapshot& snapshot_;
  CallWatch& watch_;
  int index_ = -1;
  Place place_;
};

std::string name_of(const dcmi::ChipInfo& chip) {
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

void read_identity(Asker& asker, Gpu& gpu) {
  dcmi::ChipInfo chip{};
  int code = asker.ask("dcmi_get_device_chip_info", asker.library().chip_info, &chip);
  gpu.name = code == dcmi::kOk ? Reading<std::string>(name_of(chip)) : dcmi::why_of_code(code);
  if (gpu.name) gpu.catalog_id = catalog_id_of(*gpu.name);
  dcmi::PcieInfo pci{};
  code = asker.ask("dcmi_get_device_pcie_info_v2", asker.library().pcie_info, &pci);
  if (code == dcmi::kOk && pci.domain >= 0 && pci.bus <= 0xff && pci.slot <= 0x1f && pci.function <= 7) {
    gpu.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.{}", pci.domain, pci.bus, pci.slot, pci.function);
    gpu.pci_id = fmt::format("{:04x}:{:04x}", pci.vendor & 0xffff, pci.device & 0xffff);
  } else {
    gpu.pci_address = code == dcmi::kOk ? Why::implausible : dcmi::why_of_code(code);
    gpu.pci_id = gpu.pci_address.why();
  }
  int logic_id = 0;
  code = asker.call("dcmi_get_device_logic_id", asker.library().logic_id, &logic_id, asker.place().card,
                    asker.place().chip);
  gpu.device_minor = code == dcmi::kOk && logic_id >= 0 ? Reading<std::int64_t>(logic_id) : dcmi::why_of_code(code);
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
  dcmi::HbmInfo hbm{};
  int code = asker.ask("dcmi_get_device_hbm_info", asker.library().hbm_info, &hbm);
  std::int64_t unit = kMib;
  if (code != dcmi::kOk) {
    code = asker.ask("dcmi_get_hbm_info", asker.library().hbm_info_in_kb, &hbm);
    unit = 1024;
  }
  if (code == dcmi::kOk && hbm.size > 0) {
    set(bytes_of(hbm.size, unit), bytes_of(hbm.used, unit));
    gpu.memory_temperature = plausible(Celsius{static_cast<double>(hbm.temperature)});
    gpu.memory_clock = plausible(Hertz{hbm.frequency * 1e6});
    return;
  }
  dcmi::MemoryInfoV3 ddr3{};
  dcmi::MemoryInfo ddr{};
  code = asker.ask("dcmi_get_device_memory_info_v3", asker.library().memory_info_v3, &ddr3);
  if (code == dcmi::kOk)
    ddr = {ddr3.size, ddr3.frequency, ddr3.used_percent};
  else
    code = asker.ask("dcmi_get_device_memory_info_v2", asker.library().memory_info, &ddr);
  if (code != dcmi::kOk || ddr.size == 0) {
    const Why why = code == dcmi::kOk ? Why::no_data : dcmi::why_of_code(code);
    return set(why, why);
  }
  const Reading<Bytes> total = bytes_of(ddr.size, kMib);
  Reading<Bytes> used = total ? Why::implausible : total.why();
  if (total && ddr.used_percent <= 100) used = total->scaled(ddr.used_percent / 100.0);
  set(total, used);
  gpu.memory_clock = plausible(Hertz{ddr.frequency * 1e6});
}

Reading<Ratio> rate(Asker& asker, dcmi::Rate which) {
  unsigned percent = 0;
  const int code =
      asker.ask("dcmi_get_device_utilization_rate", asker.library().utilization, static_cast<int>(which), &percent);
  if (code != dcmi::kOk) return dcmi::why_of_code(code);
  return plausible(Ratio{percent / 100.0});
}

Reading<Hertz> clock(Asker& asker, dcmi::Frequency which) {
  unsigned megahertz = 0;
  const int code = asker.ask("dcmi_get_device_frequency", asker.library().frequency, which, &megahertz);
  if (code != dcmi::kOk) return dcmi::why_of_code(code);
  return plausible(Hertz{megahertz * 1e6});
}

void read_sensors(Asker& asker, Gpu& gpu) {
  gpu.utilization = rate(asker, dcmi::Rate::ai_core);
  gpu.memory_utilization = rate(asker, dcmi::Rate::hbm_bandwidth);
  if (!gpu.memory_utilization) gpu.memory_utilization = rate(asker, dcmi::Rate::ddr_bandwidth);
  gpu.sm_clock = clock(asker, dcmi::Frequency::ai_core);
  gpu.sm_clock_max = clock(asker, dcmi::Frequency::ai_core_max);
  int value = 0;
  int code = asker.ask("dcmi_get_device_temperature", asker.library().temperature, &value);
  gpu.temperature = code == dcmi::kOk ? plausible(Celsius{static_cast<double>(value)}) : dcmi::why_of_code(code);
  code = asker.ask("dcmi_get_device_power_info", asker.library().power, &value);
  gpu.power = code == dcmi::kOk ? plausible(Watts{value / 10.0}) : dcmi::why_of_code(code);  // told in 0.1 W
}

void read_ecc(Asker& asker, Gpu& gpu) {
  dcmi::EccInfo ecc{};
  int code = asker.ask("dcmi_get_device_ecc_info", asker.library().ecc_info, dcmi::EccOf::hbm, &ecc);
  if (code != dcmi::kOk) code = asker.ask("dcmi_get_device_ecc_info", asker.library().ecc_info, dcmi::EccOf::ddr, &ecc);
  const Why why = dcmi::why_of_code(code);
  const auto count = [&](unsigned value) { return code == dcmi::kOk ? Reading<std::int64_t>(value) : why; };
  gpu.ecc_enabled = code == dcmi::kOk ? Reading<bool>(ecc.enabled != 0) : why;
  gpu.ecc_corrected_volatile = count(ecc.single_bit);
  gpu.ecc_uncorrected_volatile = count(ecc.double_bit);
  gpu.ecc_corrected_aggregate = count(ecc.all_single_bit);
  gpu.ecc_uncorrected_aggregate = count(ecc.all_double_bit);
  gpu.retired_pages_corrected = count(ecc.single_bit_pages);
  gpu.retired_pages_uncorrected = count(ecc.double_bit_pages);
}

// "80e01801 (text), ..." of the present faults.
std::string fault_codes(Asker& asker) {
  constexpr int kMostCodes = 128, kMostShown = 4;
  std::array<unsigned, kMostCodes> codes{};
  int count = 0;
  if (asker.ask("dcmi_get_device_errorcode_v2", asker.library().error_codes, &count, codes.data(),
                unsigned{kMostCodes}) != dcmi::kOk)
    return {};
  std::string text;
  for (int i = 0; i < std::min({count, kMostCodes, kMostShown}); ++i) {
    std::array<unsigned char, 256> words{};
    const unsigned code = codes[static_cast<std::size_t>(i)];
    text += fmt::format("{}{:x}", text.empty() ? "" : ", ", code);
    if (asker.ask("dcmi_get_device_errorcode_string", asker.library().error_text, code, words.data(),
                  static_cast<int>(words.size()) - 1) == dcmi::kOk)
      text += fmt::format(" ({})", trim(reinterpret_cast<const char*>(words.data())));
  }
  return text;
}

void judge(Asker& asker, Gpu& gpu) {
  unsigned health = 0;
  const int code = asker.ask("dcmi_get_device_health", asker.library().health, &health);
  if (code == dcmi::kNoSuchDevice || (code == dcmi::kOk && health == 0xffff'ffff)) {
    gpu.state = State::lost;
    gpu.state_detail = "the driver says that the device does not exist";
  } else if (code == dcmi::kNotPermitted) {
    gpu.state = State::no_permission;
    gpu.state_detail = "the driver refuses this user; join the group HwHiAiUser or run as root";
  } else if (code != dcmi::kOk && code != dcmi::kNotSupported && code != dcmi::kNotInContainer) {
    gpu.state = State::failed;
    gpu.state_detail = fmt::format("dcmi_get_device_health answers {}", code);
  } else if (code == dcmi::kOk && health > 0) {
    const std::string codes = fault_codes(asker);
    const std::string alarm = health == 1 ? "minor alarm" : health == 2 ? "major alarm" : "critical alarm";
    if (health >= 2) gpu.state = State::failed;
    gpu.state_detail = codes.empty() ? alarm : alarm + ": " + codes;
  }
}

void read_processes(Asker& asker, std::size_t position, Snapshot& snapshot) {
  // Older drivers fill in what they have, whatever the limit says: twice the room.
  std::array<dcmi::ProcessMemory, 2 * dcmi::kMostProcesses> found{};
  int count = 0;
  if (asker.ask("dcmi_get_device_resource_info", asker.library().processes, found.data(), &count) != dcmi::kOk) return;
  for (int i = 0; i < std::min(count, static_cast<int>(found.size())); ++i) {
    const dcmi::ProcessMemory& one = found[static_cast<std::size_t>(i)];
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

class AscendSource : public Source {
 public:
  explicit AscendSource(const SourceOptions& options) : options_(options) {}

  std::string_view name() const override { return "ascend"; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    if (options_.simulated) return;
    if (!options_.root.empty() && options_.dcmi_library.find('/') == std::string::npos)
      return report(snapshot, SourceReport::Outcome::absent,
                    fmt::format("not asked, as {} stands for another machine", options_.root));
    if (!open(snapshot, watch)) return;
    Asker asker(*library_, snapshot, watch);
    if (!find_devices(asker, snapshot)) return;
    for (std::size_t i = 0; i < places_.size(); ++i) read_device(asker, static_cast<int>(i), snapshot, watch);
    snapshot.drivers.push_back(driver(asker));
    report(snapshot, SourceReport::Outcome::found, fmt::format("{} devices", places_.size()));
  }

 private:
  static void report(Snapshot& snapshot, SourceReport::Outcome outcome, std::string text, std::string hint = {}) {
    snapshot.sources.push_back({"ascend", outcome, std::move(text), std::move(hint)});
  }

  bool open(Snapshot& snapshot, CallWatch& watch) {
    if (ready_) return true;
    const bool is_early =
        tried_ && snapshot.monotonic_ns >= tried_at_ && snapshot.monotonic_ns - tried_at_ < kTryAgainAfter;
    if (!is_early) {
      tried_ = true;
      tried_at_ = snapshot.monotonic_ns;
      if (!library_ || !library_->is_open()) library_ = std::make_unique<dcmi::Library>(options_.dcmi_library);
      if (library_->is_open()) init_code_ = Asker(*library_, snapshot, watch).call("dcmi_init", library_->init);
      ready_ = library_->is_open() && init_code_ == dcmi::kOk;
    }
    if (ready_) return true;
    if (!library_->is_open())
      report(snapshot, SourceReport::Outcome::absent, library_->trouble());
    else
      report(snapshot, SourceReport::Outcome::failed, fmt::format("dcmi_init answers {}", init_code_),
             init_code_ == dcmi::kNotPermitted ? "join the group HwHiAiUser or run as root"
                                               : "is the Ascend driver loaded?");
    return false;
  }

  bool find_devices(Asker& asker, Snapshot& snapshot) {
    int count = 0;
    std::array<int, dcmi::kMostCards> cards{};
    asker.set_device(-1, {});
    const int code = asker.call("dcmi_get_card_list", library_->card_list, &count, cards.data(), dcmi::kMostCards);
    if (code != dcmi::kOk || count < 0 || count > dcmi::kMostCards) {
      ready_ = false;
      report(snapshot, SourceReport::Outcome::failed, fmt::format("dcmi_get_card_list answers {}", code));
      return false;
    }
    std::vector<Place> places;
    for (int i = 0; i < count; ++i) add_chips(asker, cards[static_cast<std::size_t>(i)], places);
    if (places != places_) {
      places_ = std::move(places);
      identities_.assign(places_.size(), std::nullopt);
    }
    if (!places_.empty()) return true;
    report(snapshot, SourceReport::Outcome::absent, "DCMI knows of no device");
    return false;
  }

  // A card has chips that compute and a controller, which does not.
  void add_chips(Asker& asker, int card, std::vector<Place>& places) const {
    int chips = 0, controller = 0, processor = 0;
    int code =
        asker.call("dcmi_get_device_id_in_card", library_->device_id_in_card, card, &chips, &controller, &processor);
    if (code != dcmi::kOk) code = asker.call("dcmi_get_device_num_in_card", library_->device_num_in_card, card, &chips);
    if (code != dcmi::kOk) chips = 1;  // the row stays, and says what is wrong
    for (int chip = 0; chip < std::min(chips, kMostChips); ++chip) {
      dcmi::UnitType type = dcmi::UnitType::npu;
      const int typed = asker.call("dcmi_get_device_type", library_->device_type, card, chip, &type);
      if (typed == dcmi::kOk && type != dcmi::UnitType::npu) continue;
      places.push_back({card, chip});
    }
  }

  void read_device(Asker& asker, int index, Snapshot& snapshot, CallWatch& watch) {
    std::optional<Gpu>& identity = identities_[static_cast<std::size_t>(index)];
    Gpu gpu;
    gpu.vendor = Vendor::huawei;
    gpu.source = kName;
    gpu.vendor_index = index;
    const std::size_t position = snapshot.gpus.size();
    snapshot.gpus.push_back(identity ? *identity : gpu);
    if (watch.forbidden(kName, index)) return;
    asker.set_device(index, places_[static_cast<std::size_t>(index)]);
    if (!identity) {
      read_identity(asker, gpu);
      if (gpu.name) identity = gpu;
      snapshot.gpus[position] = gpu;
    } else {
      gpu = *identity;
    }
    judge(asker, gpu);
    if (gpu.state == State::lost || gpu.state == State::no_permission) {
      explain_missing(gpu, gpu.state == State::lost ? Why::lost : Why::no_permission);
      snapshot.gpus[position] = std::move(gpu);
      return;
    }
    read_memory(asker, gpu);
    read_sensors(asker, gpu);
    if (options_.wants.health) read_ecc(asker, gpu);
    explain_missing(gpu, Why::not_supported);
    forget_unasked(options_.wants, gpu);
    snapshot.gpus[position] = std::move(gpu);
    if (options_.wants.processes) read_processes(asker, position, snapshot);
  }

  Driver driver(Asker& asker) const {
    Driver driver;
    driver.source = kName;
    driver.cuda_version = Why::not_supported;
    const auto version = [&](const char* name, int (*function)(char*, unsigned)) -> Reading<std::string> {
      char text[256] = {};
      const int code = asker.call(name, function, text, unsigned{sizeof text - 1});
      if (code != dcmi::kOk) return dcmi::why_of_code(code);
      return text_of(text);
    };
    asker.set_device(-1, {});
    driver.version = version("dcmi_get_driver_version", library_->driver_version);
    driver.library_version = version("dcmi_get_dcmi_version", library_->library_version);
    return driver;
  }

  SourceOptions options_;
  std::unique_ptr<dcmi::Library> library_;
  bool ready_ = false, tried_ = false;
  std::int64_t tried_at_ = 0;
  int init_code_ = dcmi::kOk;
  std::vector<Place> places_;
  std::vector<std::optional<Gpu>> identities_;
};

}  // namespace

std::unique_ptr<Source> ascend_source(const SourceOptions& options) {
  return std::make_unique<AscendSource>(options);
}

}  // namespace gpuwright::device
