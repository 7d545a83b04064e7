// NVIDIA's Jetson modules. Their GPU is no PCI device, and NVML, where it is there, answers zeros: load, clocks and
// sensors are the platform's own files, and memory is the machine's.
//
// Load: "load" of the GPU's device, 0 to 1000 (L4T kernel, drivers/gpu/nvgpu/os/linux/sysfs... "load" divides the
// PMU's idle counters); clocks: devfreq (Documentation/ABI/testing/sysfs-class-devfreq), in hertz; temperature: the
// thermal zone called GPU-therm or gpu-thermal; power: the INA3221 rail whose name has GPU in it (hwmon in*_label,
// millivolt x milliampere); per-process memory: nvmap's debugfs, which only root may read.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "device/source.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_card.h"
#include "device/sysfs/host_memory.h"
#include "device/tegra/nvmap.h"

namespace gpuwright::device {
namespace {

constexpr const char* kName = "tegra";
constexpr double kFullLoad = 1000;

struct Chip {
  std::string_view compatible, architecture, compute_capability;
};
// The last entry of /proc/device-tree/compatible; capabilities: NVIDIA, "CUDA GPUs" (developer.nvidia.com/cuda-gpus).
constexpr std::array kChips = {
    Chip{"nvidia,tegra210", "Maxwell", "5.3"},    Chip{"nvidia,tegra186", "Pascal", "6.2"},
    Chip{"nvidia,tegra194", "Volta", "7.2"},      Chip{"nvidia,tegra234", "Ampere", "8.7"},
    Chip{"nvidia,tegra264", "Blackwell", "11.0"},
};

// The board's text is followed by a NUL, lists of names are parted by them.
std::vector<std::string> strings_of(const std::string& path) {
  const FileText file = read_start(path, kMostAttributeBytes);
  std::vector<std::string> strings;
  for (const std::string_view part : split(file.text, '\0'))
    if (!trim(part).empty()) strings.emplace_back(trim(part));
  return strings;
}

class TegraSource : public Source {
 public:
  explicit TegraSource(const SourceOptions& options) : options_(options) {}

  std::string_view name() const override { return kName; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    if (options_.simulated) return;
    // Early in the boot the files are not there yet: they are looked for each time until they are.
    if (device_.empty()) find_gpu();
    if (device_.empty() && chip_ == nullptr) {
      snapshot.sources.push_back({kName, SourceReport::Outcome::absent, "no Tegra chip in /proc/device-tree", {}});
      return;
    }
    // Thor's GPU is told by NVML, and well.
    if (std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(),
                    [](const Gpu& gpu) { return gpu.source == "nvml" && gpu.unified_memory; })) {
      snapshot.sources.push_back({kName, SourceReport::Outcome::absent, "NVML tells of this module's GPU", {}});
      return;
    }
    const std::size_t position = snapshot.gpus.size();
    snapshot.gpus.push_back(identity());
    if (!watch.forbidden(kName, 0)) {
      watch.enter(kName, 0, "reading of the platform's attributes");
      read_gpu(snapshot, position);
      watch.leave();
    }
    snapshot.drivers.push_back(driver_of(options_.root, "nvgpu"));
    snapshot.drivers.back().source = kName;
    snapshot.sources.push_back({kName, SourceReport::Outcome::found, "1 GPU", {}});
  }

 private:
  std::string at(std::string_view path) const { return fmt::format("{}{}", options_.root, path); }

  void find_gpu() {
    const auto models = strings_of(at("/proc/device-tree/model"));
    model_ = models.empty() ? "" : models.front();
    const auto compatible = strings_of(at("/proc/device-tree/compatible"));
    for (const Chip& chip : kChips)
      if (std::find(compatible.begin(), compatible.end(), chip.compatible) != compatible.end()) chip_ = &chip;
    if (chip_ == nullptr && model_.find("Jetson") == std::string::npos) return;
    // "17000000.gpu", "17000000.ga10b", "57000000.gpu", "17000000.gv11b"; "gpu-gpc-0" of Thor.
    const std::string folder = at("/sys/class/devfreq/");
    for (const std::string& entry : names_in(folder, 256)) {
      if (!is_gpu_name(entry)) continue;
      devfreq_ = folder + entry;
      device_ = devfreq_ + "/device";
      break;
    }
    for (const char* path : {"/sys/devices/gpu.0", "/sys/devices/platform/gpu.0"})
      if (!read_count(load_file()) && read_count(at(path) + "/load")) device_ = at(path);
  }

  static bool is_gpu_name(std::string_view name) {
    constexpr std::array<std::string_view, 5> kEndings = {".gpu", ".ga10b", ".gv11b", ".gp10b", ".gm20b"};
    return name.starts_with("gpu-gpc") || std::any_of(kEndings.begin(), kEndings.end(),
                                                      [&](std::string_view ending) { return name.ends_with(ending); });
  }

  std::string load_file() const { return device_ + "/load"; }

  Gpu identity() const {
    Gpu gpu;
    gpu.vendor = Vendor::nvidia;
    gpu.source = kName;
    gpu.unified_memory = true;
    gpu.name = model_.empty() ? Reading<std::string>(Why::no_data) : Reading<std::string>(model_);
    if (chip_ != nullptr) {
      gpu.architecture = std::string(chip_->architecture);
      gpu.compute_capability = std::string(chip_->compute_capability);
    }
    return gpu;
  }

  void read_gpu(Snapshot& snapshot, std::size_t position) {
    Gpu gpu = identity();
    gpu.serial = Why::not_supported;
    if (const auto serial = strings_of(at("/proc/device-tree/serial-number")); !serial.empty())
      gpu.serial = serial.front();
    gpu.utilization = read_load();
    gpu.graphics_clock = devfreq_.empty() ? Why::not_supported : read_hertz(devfreq_ + "/cur_freq", 1);
    gpu.graphics_clock_max = devfreq_.empty() ? Why::not_supported : read_hertz(devfreq_ + "/max_freq", 1);
    gpu.sm_clock = gpu.graphics_clock;
    gpu.sm_clock_max = gpu.graphics_clock_max;
    gpu.temperature = read_temperature();
    gpu.power = read_power();
    const auto held = read_processes(snapshot, position);
    read_memory(gpu, held);
    gpu.catalog_id = catalog_id(gpu);
    explain_missing(gpu, Why::not_supported);
    snapshot.gpus[position] = std::move(gpu);
  }

  // A GPU that is powered down has no load to tell.
  Reading<Ratio> read_load() const {
    for (const std::string& file : {load_file(), devfreq_ + "/load"}) {
      const auto load = read_ratio(file, kFullLoad);
      if (load || load.why() != Why::not_supported) return load;
    }
    return Why::not_supported;
  }

  Reading<Celsius> read_temperature() const {
    const std::string folder = at("/sys/class/thermal/");
    for (const std::string& zone : numbered_in(folder, "thermal_zone", 256)) {
      const std::string type = lower(read_attribute(folder + zone + "/type").value_or(""));
      if (type.starts_with("gpu-therm")) return read_celsius(folder + zone + "/temp", 1e-3);
    }
    return Why::not_supported;
  }

  // "VDD_GPU_SOC" (Orin), "GPU" (Xavier), "POM_5V_GPU" (Nano): a rail that may feed more than the GPU.
  Reading<Watts> read_power() const {
    const std::string folder = at("/sys/class/hwmon/");
    for (const std::string& hwmon : numbered_in(folder, "hwmon", 256)) {
      if (read_attribute(folder + hwmon + "/name") != std::string("ina3221")) continue;
      for (const char* channel : {"1", "2", "3"}) {
        const std::string label = read_attribute(folder + hwmon + "/in" + channel + "_label").value_or("");
        if (label.find("GPU") == std::string::npos) continue;
        const auto millivolts = read_count(folder + hwmon + "/in" + channel + "_input", 100'000);
        const auto milliamperes = read_count(folder + hwmon + "/curr" + channel + "_input", 1'000'000);
        if (!millivolts) return millivolts.why();
        if (!milliamperes) return milliamperes.why();
        return plausible(Watts{static_cast<double>(*millivolts) * static_cast<double>(*milliamperes) * 1e-6});
      }
    }
    return Why::not_supported;
  }

  Reading<Bytes> read_processes(Snapshot& snapshot, std::size_t position) const {
    const FileText text = read_start(at("/sys/kernel/debug/nvmap/iovmm/clients"), 1 << 20);
    if (!text) return text.error == ENOENT && options_.root.empty() ? Why::no_permission : why_of(text.error);
    if (!text.whole) return Why::implausible;
    Bytes sum;
    for (const NvmapClient& client : parse_nvmap_clients(text.text)) {
      Process process;
      process.gpu = static_cast<int>(position);
      process.pid = client.pid;
      if (options_.root.empty()) process.pid_here = client.pid;
      process.memory = client.memory;
      process.gpu_instance = process.compute_instance = Why::not_supported;
      process.sm_utilization = process.memory_utilization = Why::not_supported;
      process.encoder_utilization = process.decoder_utilization = Why::not_supported;
      process.kind = process_kind::kCompute;
      sum = Bytes{checked_add(sum.count, client.memory.count).value_or(sum.count)};
      if (options_.wants.processes) snapshot.processes.push_back(std::move(process));
    }
    return sum;
  }

  void read_memory(Gpu& gpu, const Reading<Bytes>& held) const {
    const HostMemory host = read_host_memory(options_.root);
    gpu.memory_total = host.total ? Reading<Bytes>(*host.total) : Why::no_data;
    gpu.memory_free = host.available ? Reading<Bytes>(*host.available) : Why::no_data;
    gpu.memory_reserved = Why::unified_memory;
    gpu.memory_used = held;
    gpu.host_used = held ? Why::no_data : held.why();
    if (held && host.total && host.available) gpu.host_used = std::max(*host.total - *host.available - *held, Bytes{});
  }

  // The board's name says the module, but not which memory it has: rows are told apart by that.
  static std::string catalog_id(const Gpu& gpu) {
    const catalog::Catalog* catalog = known_gpus();
    if (catalog == nullptr || !gpu.name || !gpu.memory_total) return {};
    const catalog::Accelerator* match = nullptr;
    for (const catalog::Accelerator& row : catalog->accelerators()) {
      if (row.family != "embedded" || row.nominal_memory < *gpu.memory_total ||
          row.nominal_memory.scaled(0.75) > *gpu.memory_total)
        continue;
      // "Jetson AGX Orin 64GB" without its last word stands in "NVIDIA Jetson AGX Orin Developer Kit".
      const std::string stem = row.name.substr(0, row.name.rfind(' '));
      const bool is_super = gpu.name->find("Super") != std::string::npos;
      if (gpu.name->find(stem) == std::string::npos || is_super != (row.name.find("Super") != std::string::npos))
        continue;
      if (match != nullptr) return {};
      match = &row;
    }
    return match == nullptr ? std::string() : match->id;
  }

  SourceOptions options_;
  std::string model_;
  const Chip* chip_ = nullptr;
  std::string device_, devfreq_;
};

}  // namespace

std::unique_ptr<Source> tegra_source(const SourceOptions& options) {
  return std::make_unique<TegraSource>(options);
}

}  // namespace gpuwright::device
