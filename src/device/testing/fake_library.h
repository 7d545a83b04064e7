// A driver's library that answers as a test says, in this process: two healthy GPUs to start with, of which a test
// changes figures, replaces functions, or takes functions away as an old driver does.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/nvml/library.h"

namespace gpuwright::device::testing {

struct FakeProcess {
  unsigned pid = 0;
  unsigned long long memory = 0;
  unsigned gpu_instance = nvml::kNoInstance, compute_instance = nvml::kNoInstance;
};

struct FakeGpu {
  std::string name = "NVIDIA H100 80GB HBM3", uuid, bus_id;
  unsigned architecture = nvml::kHopper;
  nvml::Return handle = nvml::kSuccess;  // what asking for the handle answers
  nvml::Return all = nvml::kSuccess;     // what everything else answers, when not kSuccess
  nvml::Return memory_code = nvml::kSuccess;
  nvml::MemoryV2 memory{0, 85520809984ULL, 655360000ULL, 64865449984ULL, 20000000000ULL};
  nvml::Return utilization_code = nvml::kSuccess;
  nvml::Utilization utilization{97, 41};
  std::vector<FakeProcess> compute, graphics;
  nvml::Return samples_code = nvml::kSuccess;
  std::vector<nvml::ProcessUtilizationSample> samples;
  nvml::Return mig_code = nvml::kSuccess;
  unsigned mig_mode = 0;
  std::vector<std::pair<unsigned, nvml::MemoryV2>> instances;  // gpu instance, memory
  std::map<unsigned, std::pair<nvml::Return, unsigned long long>> fields;
};

class FakeLibrary {
 public:
  FakeLibrary();
  FakeLibrary(const FakeLibrary&) = delete;
  FakeLibrary& operator=(const FakeLibrary&) = delete;
  ~FakeLibrary();

  std::vector<FakeGpu> gpus;
  nvml::Return init = nvml::kSuccess;
  std::string driver_version = "550.90.07", library_version = "12.550.90.07";
  std::vector<std::pair<unsigned, unsigned long long>> xids;  // device, code; taken by the next poll
  bool strict_versions = false;                               // a struct of another version is refused with 25
  int pcie_throughput_ms = 0;                                 // how long nvmlDeviceGetPcieThroughput blocks
  std::map<std::string, int> calls;

  template <class F>
  void replace(const std::string& name, F function) {
    replaced_[name] = reinterpret_cast<void*>(+function);
  }
  void take_away(const std::string& name) { replaced_[name] = nullptr; }

  std::shared_ptr<const nvidia::Library> library() const;

 private:
  std::map<std::string, void*> replaced_;
};

}  // namespace gpuwright::device::testing
