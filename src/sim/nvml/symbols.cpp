// The functions by name, as dlsym would find them in the simulated driver.
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/host_state.h"
#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

struct Symbol {
  std::string_view name;
  void* function;
};

const Symbol kSymbols[] = {
#define GW_SYMBOL(function, arguments) {#function, reinterpret_cast<void*>(&function)},
    GW_NVML_FUNCTIONS(GW_SYMBOL)
#undef GW_SYMBOL
        {"nvmlErrorString", reinterpret_cast<void*>(&nvmlErrorString)},
};

// The first driver branch that has a function, where that is later than 304. A last '*' stands for any ending; the
// first line that fits counts. From the nvml.h of CUDA 5.5 to 13.0 and the NVML API Reference Guides of R535, R550,
// R570, R590.
struct Beginning {
  std::string_view name;
  int branch;
};
constexpr Beginning kBeginnings[] = {
    {"nvmlDeviceGetComputeRunningProcesses_v3", 510},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", 510},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", 510},
    {"nvmlDeviceGetComputeRunningProcesses_v2", 450},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2", 450},
    {"nvmlDeviceGetMPSComputeRunningProcesses*", 450},
    {"nvmlDeviceGetRunningProcessDetailList", 545},
    {"nvmlDeviceGetProcessesUtilizationInfo", 545},
    {"nvmlDeviceGetProcessUtilization", 375},
    {"nvmlDeviceGetConfComputeMemSizeInfo", 525},
    {"nvmlDeviceGetMemoryInfo_v2", 510},
    {"nvmlDeviceGetTemperatureV", 570},
    {"nvmlDeviceGetFanSpeedRPM", 565},
    {"nvmlDeviceGetNumFans", 510},
    {"nvmlDeviceGetFanSpeed_v2", 384},
    {"nvmlDeviceGetCurrentClocksEventReasons", 535},
    {"nvmlDeviceGetSupportedClocksEventReasons", 535},
    {"nvmlDeviceGetJpgUtilization", 545},
    {"nvmlDeviceGetOfaUtilization", 545},
    {"nvmlDeviceGetNumaNodeId", 550},
    {"nvmlDeviceGetGpuMaxPcieLinkGeneration", 515},
    {"nvmlDeviceGetMemoryBusWidth", 510},
    {"nvmlDeviceGetNumGpuCores", 510},
    {"nvmlDeviceGetArchitecture", 450},
    {"nvmlDeviceGetRemappedRows", 450},
    {"nvmlDeviceGetCpuAffinityWithinScope", 450},
    {"nvmlDeviceGetMemoryAffinity", 450},
    {"nvmlDeviceGetDriverModel_v2", 570},
    {"nvmlGpm*", 520},
    {"nvmlDeviceGetMigMode", 450},
    {"nvmlDeviceGetMaxMigDeviceCount", 450},
    {"nvmlDeviceGetMigDeviceHandleByIndex", 450},
    {"nvmlDeviceIsMigDeviceHandle", 450},
    {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle", 450},
    {"nvmlDeviceGetGpuInstanceId", 450},
    {"nvmlDeviceGetComputeInstanceId", 450},
    {"nvmlDeviceGetAttributes*", 450},
    {"nvmlEventSetWait_v2", 450},
    {"nvmlSystemGetCudaDriverVersion*", 410},
    {"nvmlDeviceGetTotalEnergyConsumption", 396},
    {"nvmlDeviceGetRetiredPages_v2", 410},
    {"nvmlInitWithFlags", 396},
    {"nvmlDeviceGetPciInfo_v3", 384},
    {"nvmlDeviceGetNvLink*", 375},
    {"nvmlDeviceGetP2PStatus", 375},
    {"nvmlDeviceGetFieldValues", 375},
    {"nvmlInit_v2", 319},
    {"nvmlDeviceGetCount_v2", 319},
    {"nvmlDeviceGetHandleByIndex_v2", 319},
    {"nvmlDeviceGetHandleByPciBusId_v2", 319},
    {"nvmlDeviceGetPciInfo_v2", 319},
};

bool fits(std::string_view pattern, std::string_view function) {
  if (!pattern.ends_with('*')) return function == pattern;
  return function.starts_with(pattern.substr(0, pattern.size() - 1));
}

int first_branch(std::string_view function) {
  const auto* found = std::find_if(std::begin(kBeginnings), std::end(kBeginnings),
                                   [function](const Beginning& row) { return fits(row.name, function); });
  return found == std::end(kBeginnings) ? 0 : found->branch;
}

}  // namespace

bool calls::has_symbol(const DriverSpec& driver, std::string_view function) {
  if (driver.generation > 0 && first_branch(function) > driver.generation) return false;
  return std::none_of(driver.missing.begin(), driver.missing.end(),
                      [function](const std::string& missing) { return fits(missing, function); });
}

void* nvml_symbol(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSymbols), std::end(kSymbols),
                                   [name](const Symbol& symbol) { return symbol.name == name; });
  if (found == std::end(kSymbols)) return nullptr;
  const auto host = calls::installed();
  if (host != nullptr && !calls::has_symbol(host->state().scenario.driver, name)) return nullptr;
  return found->function;
}

}  // namespace gpuwright::sim
