#include "device/testing/fake_library.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

namespace gpuwright::device::testing {
namespace {

FakeLibrary* now_speaking = nullptr;
// The source asks from side threads, too, and one of them may outlive a test.
std::recursive_mutex speaking;
std::mutex counting;  // the PCIe meter calls from its own thread

FakeLibrary& fake(const char* name) {
  const std::scoped_lock lock(counting);
  ++now_speaking->calls[name];
  return *now_speaking;
}

// Handles: 1 + index of a GPU; MIG instances: 1000 * (1 + index) + slot.
nvml::Device handle(std::uintptr_t number) {
  return reinterpret_cast<nvml::Device>(number);
}
bool is_instance(nvml::Device device) {
  return reinterpret_cast<std::uintptr_t>(device) >= 1000;
}
FakeGpu* gpu_of(nvml::Device device) {
  auto number = reinterpret_cast<std::uintptr_t>(device);
  if (number >= 1000) number /= 1000;
  return number == 0 || number > now_speaking->gpus.size() ? nullptr : &now_speaking->gpus[number - 1];
}
unsigned slot_of(nvml::Device device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) % 1000);
}

nvml::Return write(const std::string& text, char* into, unsigned size) {
  if (text.size() + 1 > size) return nvml::kInsufficientSize;
  std::memcpy(into, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

// What a device answers before the question is looked at.
#define GW_FAKE_GPU(name)                                   \
  const std::scoped_lock lock(speaking);                    \
  if (now_speaking == nullptr) return nvml::kUninitialized; \
  fake(name);                                               \
  FakeGpu* gpu = gpu_of(device);                            \
  if (gpu == nullptr) return nvml::kInvalidArgument;        \
  if (gpu->all != nvml::kSuccess) return gpu->all;

nvml::Return init() {
  return fake("nvmlInit_v2").init;
}
nvml::Return shutdown() {
  fake("nvmlShutdown");
  return nvml::kSuccess;
}
nvml::Return driver_version(char* text, unsigned size) {
  return write(fake("nvmlSystemGetDriverVersion").driver_version, text, size);
}
nvml::Return library_version(char* text, unsigned size) {
  return write(fake("nvmlSystemGetNVMLVersion").library_version, text, size);
}
nvml::Return cuda_version(int* version) {
  fake("nvmlSystemGetCudaDriverVersion_v2");
  *version = 12040;
  return nvml::kSuccess;
}
nvml::Return count(unsigned* count) {
  *count = static_cast<unsigned>(fake("nvmlDeviceGetCount_v2").gpus.size());
  return nvml::kSuccess;
}
nvml::Return handle_by_index(unsigned index, nvml::Device* device) {
  FakeLibrary& library = fake("nvmlDeviceGetHandleByIndex_v2");
  if (index >= library.gpus.size()) return nvml::kInvalidArgument;
  *device = handle(index + 1);
  return library.gpus[index].handle;
}
nvml::Return handle_by_address(const char* address, nvml::Device* device) {
  FakeLibrary& library = fake("nvmlDeviceGetHandleByPciBusId_v2");
  for (std::size_t i = 0; i < library.gpus.size(); ++i)
    if (library.gpus[i].bus_id == address || library.gpus[i].bus_id == std::string("0000") + address) {
      *device = handle(i + 1);
      return library.gpus[i].handle;
    }
  return nvml::kNotFound;
}
nvml::Return name(nvml::Device device, char* text, unsigned size) {
  GW_FAKE_GPU("nvmlDeviceGetName")
  return write(is_instance(device) ? gpu->name + " MIG 1g.10gb" : gpu->name, text, size);
}
nvml::Return uuid(nvml::Device device, char* text, unsigned size) {
  GW_FAKE_GPU("nvmlDeviceGetUUID")
  return write(is_instance(device) ? "MIG-" + std::to_string(slot_of(device)) : gpu->uuid, text, size);
}
nvml::Return architecture(nvml::Device device, unsigned* value) {
  GW_FAKE_GPU("nvmlDeviceGetArchitecture")
  *value = gpu->architecture;
  return nvml::kSuccess;
}
nvml::Return pci(nvml::Device device, nvml::PciInfo* info) {
  GW_FAKE_GPU("nvmlDeviceGetPciInfo_v3")
  *info = {};
  info->bus = reinterpret_cast<std::uintptr_t>(device) & 0xFF;
  info->pci_device_id = 0x233010de;
  return write(gpu->bus_id, info->bus_id, sizeof info->bus_id);
}
nvml::Return memory_v2(nvml::Device device, nvml::MemoryV2* memory) {
  GW_FAKE_GPU("nvmlDeviceGetMemoryInfo_v2")
  if (now_speaking->strict_versions && memory->version != 0x02000028) return nvml::kArgumentVersionMismatch;
  *memory = is_instance(device) ? gpu->instances[slot_of(device)].second : gpu->memory;
  return gpu->memory_code;
}
nvml::Return memory_v1(nvml::Device device, nvml::Memory* memory) {
  GW_FAKE_GPU("nvmlDeviceGetMemoryInfo")
  *memory = {gpu->memory.total, gpu->memory.free, gpu->memory.used + gpu->memory.reserved};
  return gpu->memory_code;
}
nvml::Return utilization(nvml::Device device, nvml::Utilization* rates) {
  GW_FAKE_GPU("nvmlDeviceGetUtilizationRates")
  if (gpu->mig_mode != 0) return nvml::kNotSupported;
  *rates = gpu->utilization;
  return gpu->utilization_code;
}
nvml::Return field_values(nvml::Device device, int values_count, nvml::FieldValue* values) {
  GW_FAKE_GPU("nvmlDeviceGetFieldValues")
  for (nvml::FieldValue* value = values; value != values + values_count; ++value) {
    const auto known = gpu->fields.find(value->field_id);
    value->result = known == gpu->fields.end() ? nvml::kNotSupported : known->second.first;
    value->value_type = nvml::kUnsignedLongLong;
    if (known != gpu->fields.end()) value->value.as_unsigned_long_long = known->second.second;
  }
  return nvml::kSuccess;
}
nvml::Return pcie_throughput(nvml::Device device, nvml::PcieCounter, unsigned* kib) {
  std::chrono::milliseconds blocks{0};
  {
    GW_FAKE_GPU("nvmlDeviceGetPcieThroughput")
    blocks = std::chrono::milliseconds(now_speaking->pcie_throughput_ms);
  }
  std::this_thread::sleep_for(blocks);
  *kib = 1000;
  return nvml::kSuccess;
}

nvml::Return list(const std::vector<FakeProcess>& processes, unsigned* entries, nvml::ProcessInfoV2* into) {
  const unsigned room = *entries;
  *entries = static_cast<unsigned>(processes.size());
  if (room < processes.size()) return nvml::kInsufficientSize;
  for (std::size_t i = 0; i < processes.size(); ++i)
    into[i] = {processes[i].pid, processes[i].memory, processes[i].gpu_instance, processes[i].compute_instance};
  return nvml::kSuccess;
}
nvml::Return compute(nvml::Device device, unsigned* entries, nvml::ProcessInfoV2* into) {
  GW_FAKE_GPU("nvmlDeviceGetComputeRunningProcesses_v3")
  return list(gpu->compute, entries, into);
}
nvml::Return graphics(nvml::Device device, unsigned* entries, nvml::ProcessInfoV2* into) {
  GW_FAKE_GPU("nvmlDeviceGetGraphicsRunningProcesses_v3")
  return list(gpu->graphics, entries, into);
}
nvml::Return detail_list(nvml::Device, nvml::ProcessDetailList*) {
  return nvml::kNotSupported;
}
nvml::Return process_utilization(nvml::Device device, nvml::ProcessUtilizationSample* into, unsigned* entries,
                                 unsigned long long since) {
  GW_FAKE_GPU("nvmlDeviceGetProcessUtilization")
  if (gpu->samples_code != nvml::kSuccess) return gpu->samples_code;
  std::vector<nvml::ProcessUtilizationSample> fresh;
  // A real driver may hand out old samples, too: they are told all the same here.
  static_cast<void>(since);
  fresh = gpu->samples;
  if (fresh.empty()) return nvml::kNotFound;
  const unsigned room = *entries;
  *entries = static_cast<unsigned>(fresh.size());
  if (room < fresh.size()) return nvml::kInsufficientSize;
  std::copy(fresh.begin(), fresh.end(), into);
  return nvml::kSuccess;
}

nvml::Return mig_mode(nvml::Device device, unsigned* current, unsigned* pending) {
  GW_FAKE_GPU("nvmlDeviceGetMigMode")
  *current = *pending = gpu->mig_mode;
  return gpu->mig_code;
}
nvml::Return most_instances(nvml::Device device, unsigned* most) {
  GW_FAKE_GPU("nvmlDeviceGetMaxMigDeviceCount")
  *most = 7;
  return nvml::kSuccess;
}
nvml::Return instance_by_index(nvml::Device device, unsigned index, nvml::Device* instance) {
  GW_FAKE_GPU("nvmlDeviceGetMigDeviceHandleByIndex")
  if (index >= gpu->instances.size()) return nvml::kNotFound;
  *instance = handle(reinterpret_cast<std::uintptr_t>(device) * 1000 + index);
  return nvml::kSuccess;
}
nvml::Return gpu_instance(nvml::Device device, unsigned* id) {
  GW_FAKE_GPU("nvmlDeviceGetGpuInstanceId")
  if (slot_of(device) >= gpu->instances.size()) return nvml::kInvalidArgument;
  *id = gpu->instances[slot_of(device)].first;
  return nvml::kSuccess;
}
nvml::Return compute_instance(nvml::Device device, unsigned* id) {
  GW_FAKE_GPU("nvmlDeviceGetComputeInstanceId")
  *id = 0;
  return nvml::kSuccess;
}

nvml::Return event_set(nvml::EventSet* set) {
  fake("nvmlEventSetCreate");
  *set = reinterpret_cast<nvml::EventSet>(std::uintptr_t{0xE});
  return nvml::kSuccess;
}
nvml::Return register_events(nvml::Device device, unsigned long long, nvml::EventSet) {
  GW_FAKE_GPU("nvmlDeviceRegisterEvents")
  return nvml::kSuccess;
}
nvml::Return wait_for_event(nvml::EventSet, nvml::EventData* event, unsigned) {
  FakeLibrary& library = fake("nvmlEventSetWait_v2");
  if (library.xids.empty()) return nvml::kTimeout;
  const auto [index, code] = library.xids.front();
  library.xids.erase(library.xids.begin());
  *event = {handle(index + 1), nvml::event::kXid, code, nvml::kNoInstance, nvml::kNoInstance};
  return nvml::kSuccess;
}

template <class F>
void* address(F function) {
  return reinterpret_cast<void*>(function);
}

const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> kFunctions = {
      {"nvmlInit_v2", address(init)},
      {"nvmlShutdown", address(shutdown)},
      {"nvmlSystemGetDriverVersion", address(driver_version)},
      {"nvmlSystemGetNVMLVersion", address(library_version)},
      {"nvmlSystemGetCudaDriverVersion_v2", address(cuda_version)},
      {"nvmlDeviceGetCount_v2", address(count)},
      {"nvmlDeviceGetHandleByIndex_v2", address(handle_by_index)},
      {"nvmlDeviceGetHandleByPciBusId_v2", address(handle_by_address)},
      {"nvmlDeviceGetName", address(name)},
      {"nvmlDeviceGetUUID", address(uuid)},
      {"nvmlDeviceGetArchitecture", address(architecture)},
      {"nvmlDeviceGetPciInfo_v3", address(pci)},
      {"nvmlDeviceGetMemoryInfo_v2", address(memory_v2)},
      {"nvmlDeviceGetMemoryInfo", address(memory_v1)},
      {"nvmlDeviceGetUtilizationRates", address(utilization)},
      {"nvmlDeviceGetFieldValues", address(field_values)},
      {"nvmlDeviceGetPcieThroughput", address(pcie_throughput)},
      {"nvmlDeviceGetComputeRunningProcesses_v3", address(compute)},
      {"nvmlDeviceGetGraphicsRunningProcesses_v3", address(graphics)},
      {"nvmlDeviceGetRunningProcessDetailList", address(detail_list)},
      {"nvmlDeviceGetProcessUtilization", address(process_utilization)},
      {"nvmlDeviceGetMigMode", address(mig_mode)},
      {"nvmlDeviceGetMaxMigDeviceCount", address(most_instances)},
      {"nvmlDeviceGetMigDeviceHandleByIndex", address(instance_by_index)},
      {"nvmlDeviceGetGpuInstanceId", address(gpu_instance)},
      {"nvmlDeviceGetComputeInstanceId", address(compute_instance)},
      {"nvmlEventSetCreate", address(event_set)},
      {"nvmlDeviceRegisterEvents", address(register_events)},
      {"nvmlEventSetWait_v2", address(wait_for_event)},
  };
  return kFunctions;
}

}  // namespace

FakeLibrary::FakeLibrary() : gpus(2) {
  gpus[0].uuid = "GPU-0";
  gpus[0].bus_id = "00000000:17:00.0";
  gpus[1].uuid = "GPU-1";
  gpus[1].bus_id = "00000000:65:00.0";
  const std::scoped_lock lock(speaking);
  now_speaking = this;
}

FakeLibrary::~FakeLibrary() {
  const std::scoped_lock lock(speaking);
  now_speaking = nullptr;
}

std::shared_ptr<const nvidia::Library> FakeLibrary::library() const {
  std::map<std::string, void*> mine = functions();
  for (const auto& [name, function] : replaced_) mine[name] = function;
  return std::make_shared<const nvidia::Library>([mine](const char* name) -> void* {
    const auto found = mine.find(name);
    return found == mine.end() ? nullptr : found->second;
  });
}

}  // namespace gpuwright::device::testing
