// The list of sources, once. Their order is the order of rows on a host with devices of several vendors; pci has to
// come after those that tell of devices, and process after all, as it completes what they told.
#include "device/collector.h"

namespace gpuwright::device {

std::vector<SourceEntry> all_sources(const SourceOptions& options) {
  const auto entry = [&options](const char* name, std::unique_ptr<Source> (*make)(const SourceOptions&)) {
    return SourceEntry{name, [options, make] { return make(options); }};
  };
  std::vector<SourceEntry> entries;
  entries.push_back(entry("nvml", nvml_source));
  if (!options.simulated) {
    entries.push_back(entry("amdgpu", amdgpu_source));
    entries.push_back(entry("intel", intel_source));
    entries.push_back(entry("ascend", ascend_source));
    entries.push_back(entry("tegra", tegra_source));
    entries.push_back(entry("pci", pci_source));
  }
  entries.push_back(entry("process", process_source));
  return entries;
}

}  // namespace gpuwright::device
