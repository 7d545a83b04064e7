#include "device/memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "device/nvml_abi.h"

namespace gpuwright::device {
namespace {

constexpr unsigned kMostGpus = 1024;

// ---------------------------------------------------------------- NVIDIA

class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* reason = ::dlerror();
      trouble_ = reason == nullptr ? "cannot be opened" : reason;
      return;
    }
    const bool all = find(init_, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
                     find(count_, "nvmlDeviceGetCount_v2") && find(handle_of_, "nvmlDeviceGetHandleByIndex_v2") &&
                     find(name_, "nvmlDeviceGetName") && find(memory_, "nvmlDeviceGetMemoryInfo");
    if (!all) return;
    find(error_, "nvmlErrorString");
    const nvml::Return code = init_();
    started_ = code == 0;
    trouble_ = started_ ? "" : fmt::format("nvmlInit_v2: {}", text_of(code));
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (started_) shutdown_();
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  const std::string& trouble() const { return trouble_; }

  std::vector<GpuMemory> read() {
    std::vector<GpuMemory> gpus;
    unsigned count = 0;
    if (!started_) return gpus;
    if (const nvml::Return code = count_(&count); code != 0) {
      trouble_ = fmt::format("nvmlDeviceGetCount_v2: {}", text_of(code));
      return gpus;
    }
    for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
      nvml::Device device = nullptr;
      std::array<char, nvml::kNameSize> name{};
      nvml::Memory memory{};
      if (handle_of_(i, &device) != 0 || name_(device, name.data(), nvml::kNameSize) != 0) continue;
      const nvml::Return code = memory_(device, &memory);
      if (code != 0 || memory.total == 0 || memory.free > memory.total || memory.total >> 60 != 0) {
        trouble_ = fmt::format("GPU {} does not tell its memory: {}", i, text_of(code));
        continue;
      }
      name.back() = '\0';
      gpus.push_back({name.data(),
                      fmt::format("GPU {}", i),
                      {},
                      {},
                      Bytes{static_cast<std::int64_t>(memory.total)},
                      Bytes{static_cast<std::int64_t>(memory.free)}});
    }
    return gpus;
  }

 private:
  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) trouble_ = fmt::format("the library has no {}", name);
    return function != nullptr;
  }
  std::string text_of(nvml::Return code) const {
    const char* text = error_ == nullptr ? nullptr : error_(code);
    return text == nullptr ? fmt::format("error {}", code) : text;
  }

  void* handle_ = nullptr;
  bool started_ = false;
  std::string trouble_;
  nvml::Init init_ = nullptr;
  nvml::Shutdown shutdown_ = nullptr;
  nvml::DeviceCount count_ = nullptr;
  nvml::HandleByIndex handle_of_ = nullptr;
  nvml::DeviceName name_ = nullptr;
  nvml::MemoryInfo memory_ = nullptr;
  nvml::ErrorString error_ = nullptr;
};

// ---------------------------------------------------------------- AMD

constexpr std::int64_t kMostAttribute = 4096;

// Attributes of sysfs say that they are a page long, whatever they hold.
std::optional<std::string> attribute(const std::string& path) {
  const auto file = open_file(path);
  if (!file) return std::nullopt;
  std::string text(kMostAttribute, '\0');
  const auto got = (*file)->read_at(0, std::as_writable_bytes(std::span(text)));
  if (!got) return std::nullopt;
  return std::string(trim(std::string_view(text).substr(0, *got)));
}

std::optional<std::uint16_t> pci_number(const std::string& path) {
  const auto text = attribute(path);
  if (!text || !text->starts_with("0x")) return std::nullopt;
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text->data() + 2, text->data() + text->size(), value, 16);
  return error == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

// -1 when there is no such attribute or it holds no number.
std::int64_t byte_count(const std::string& path) {
  const auto text = attribute(path);
  return text ? to_integer(*text).value_or(-1) : -1;
}

// amdgpu's mem_info_vram_total and mem_info_vram_used (docs.kernel.org/gpu/amdgpu/driver-misc.html), in bytes.
std::optional<GpuMemory> amd_card(const std::string& folder, const std::string& card) {
  const std::int64_t total = byte_count(folder + "/mem_info_vram_total");
  const std::int64_t used = byte_count(folder + "/mem_info_vram_used");
  if (total <= 0 || used < 0 || used > total) return std::nullopt;
  GpuMemory gpu;
  gpu.address = card;
  gpu.pci_vendor = pci_number(folder + "/vendor");
  gpu.pci_device = pci_number(folder + "/device");
  gpu.name = gpu.pci_device ? fmt::format("AMD {:04x}:{:04x}", gpu.pci_vendor.value_or(0x1002), *gpu.pci_device)
                            : fmt::format("AMD {}", card);
  gpu.total = Bytes{total};
  gpu.free = Bytes{total - used};
  return gpu;
}

// "card0", but not its connectors "card0-DP-1".
bool is_card(std::string_view name) {
  return name.starts_with("card") && name.size() > 4 && to_integer(name.substr(4)).has_value();
}

std::vector<GpuMemory> amd_cards(const std::string& folder) {
  std::vector<GpuMemory> gpus;
  const auto names = list_directory(folder);
  if (!names) return gpus;
  for (const std::string& name : *names)
    if (is_card(name) && gpus.size() < kMostGpus)
      if (auto gpu = amd_card(folder + "/" + name + "/device", name)) gpus.push_back(std::move(*gpu));
  return gpus;
}

}  // namespace

Present read_gpu_memory(const Sources& sources) {
  Present present;
  if (!sources.nvml_library.empty()) {
    Nvml nvml(sources.nvml_library);
    present.gpus = nvml.read();
    if (present.gpus.empty())
      present.looked_at.push_back(
          fmt::format("NVIDIA: {}", nvml.trouble().empty() ? sources.nvml_library + " has no GPU" : nvml.trouble()));
  }
  const std::string folder = sources.root + "/sys/class/drm";
  std::vector<GpuMemory> amd = amd_cards(folder);
  if (amd.empty()) present.looked_at.push_back(fmt::format("AMD: no {}/card*/device/mem_info_vram_total", folder));
  for (GpuMemory& gpu : amd) present.gpus.push_back(std::move(gpu));
  return present;
}

}  // namespace gpuwright::device
