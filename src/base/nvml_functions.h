// The functions of NVML that are spoken here, by name and arguments, once. GW_NVML_FUNCTIONS(X) expands
// X(nvmlDeviceGetCount_v2, (unsigned*)) for each; all return nvml::Return. A driver may lack any of them: each has to
// be looked up alone. nvmlErrorString, which returns text, is nvml::ErrorString.
#pragma once

#include "base/nvml_abi.h"

#define GW_NVML_FUNCTIONS(X) GW_NVML_LIBRARY_FUNCTIONS(X) GW_NVML_DEVICE_FUNCTIONS(X) GW_NVML_OTHER_FUNCTIONS(X)

#define GW_NVML_LIBRARY_FUNCTIONS(X)                             \
  X(nvmlInit_v2, ())                                             \
  X(nvmlInit, ())                                                \
  X(nvmlInitWithFlags, (unsigned))                               \
  X(nvmlShutdown, ())                                            \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))               \
  X(nvmlSystemGetNVMLVersion, (char*, unsigned))                 \
  X(nvmlSystemGetCudaDriverVersion, (int*))                      \
  X(nvmlSystemGetCudaDriverVersion_v2, (int*))                   \
  X(nvmlSystemGetProcessName, (unsigned, char*, unsigned))       \
  X(nvmlDeviceGetCount, (unsigned*))                             \
  X(nvmlDeviceGetCount_v2, (unsigned*))                          \
  X(nvmlDeviceGetHandleByIndex, (unsigned, nvml::Device*))       \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvml::Device*))    \
  X(nvmlDeviceGetHandleByUUID, (const char*, nvml::Device*))     \
  X(nvmlDeviceGetHandleBySerial, (const char*, nvml::Device*))   \
  X(nvmlDeviceGetHandleByPciBusId, (const char*, nvml::Device*)) \
  X(nvmlDeviceGetHandleByPciBusId_v2, (const char*, nvml::Device*))

#define GW_NVML_DEVICE_FUNCTIONS(X)                                                                            \
  X(nvmlDeviceGetName, (nvml::Device, char*, unsigned))                                                        \
  X(nvmlDeviceGetUUID, (nvml::Device, char*, unsigned))                                                        \
  X(nvmlDeviceGetSerial, (nvml::Device, char*, unsigned))                                                      \
  X(nvmlDeviceGetVbiosVersion, (nvml::Device, char*, unsigned))                                                \
  X(nvmlDeviceGetBoardPartNumber, (nvml::Device, char*, unsigned))                                             \
  X(nvmlDeviceGetInforomVersion, (nvml::Device, int, char*, unsigned))                                         \
  X(nvmlDeviceGetInforomImageVersion, (nvml::Device, char*, unsigned))                                         \
  X(nvmlDeviceGetIndex, (nvml::Device, unsigned*))                                                             \
  X(nvmlDeviceGetMinorNumber, (nvml::Device, unsigned*))                                                       \
  X(nvmlDeviceGetBrand, (nvml::Device, nvml::Brand*))                                                          \
  X(nvmlDeviceGetArchitecture, (nvml::Device, unsigned*))                                                      \
  X(nvmlDeviceGetCudaComputeCapability, (nvml::Device, int*, int*))                                            \
  X(nvmlDeviceGetNumGpuCores, (nvml::Device, unsigned*))                                                       \
  X(nvmlDeviceGetBoardId, (nvml::Device, unsigned*))                                                           \
  X(nvmlDeviceGetMultiGpuBoard, (nvml::Device, unsigned*))                                                     \
  X(nvmlDeviceGetPciInfo, (nvml::Device, nvml::PciInfo*))                                                      \
  X(nvmlDeviceGetPciInfo_v2, (nvml::Device, nvml::PciInfo*))                                                   \
  X(nvmlDeviceGetPciInfo_v3, (nvml::Device, nvml::PciInfo*))                                                   \
  X(nvmlDeviceGetNumaNodeId, (nvml::Device, unsigned*))                                                        \
  X(nvmlDeviceGetCpuAffinity, (nvml::Device, unsigned, unsigned long*))                                        \
  X(nvmlDeviceGetCpuAffinityWithinScope, (nvml::Device, unsigned, unsigned long*, unsigned))                   \
  X(nvmlDeviceGetMemoryAffinity, (nvml::Device, unsigned, unsigned long*, unsigned))                           \
  X(nvmlDeviceGetTopologyCommonAncestor, (nvml::Device, nvml::Device, nvml::TopologyLevel*))                   \
  X(nvmlDeviceGetTopologyNearestGpus, (nvml::Device, nvml::TopologyLevel, unsigned*, nvml::Device*))           \
  X(nvmlDeviceGetP2PStatus, (nvml::Device, nvml::Device, nvml::P2pCapability, nvml::P2pStatus*))               \
  X(nvmlDeviceGetPersistenceMode, (nvml::Device, nvml::EnableState*))                                          \
  X(nvmlDeviceGetDisplayMode, (nvml::Device, nvml::EnableState*))                                              \
  X(nvmlDeviceGetDisplayActive, (nvml::Device, nvml::EnableState*))                                            \
  X(nvmlDeviceGetComputeMode, (nvml::Device, nvml::ComputeMode*))                                              \
  X(nvmlDeviceGetDriverModel, (nvml::Device, int*, int*))                                                      \
  X(nvmlDeviceGetDriverModel_v2, (nvml::Device, int*, int*))                                                   \
  X(nvmlDeviceGetMemoryInfo, (nvml::Device, nvml::Memory*))                                                    \
  X(nvmlDeviceGetMemoryInfo_v2, (nvml::Device, nvml::MemoryV2*))                                               \
  X(nvmlDeviceGetBAR1MemoryInfo, (nvml::Device, nvml::Bar1Memory*))                                            \
  X(nvmlDeviceGetMemoryBusWidth, (nvml::Device, unsigned*))                                                    \
  X(nvmlDeviceGetUtilizationRates, (nvml::Device, nvml::Utilization*))                                         \
  X(nvmlDeviceGetEncoderUtilization, (nvml::Device, unsigned*, unsigned*))                                     \
  X(nvmlDeviceGetDecoderUtilization, (nvml::Device, unsigned*, unsigned*))                                     \
  X(nvmlDeviceGetJpgUtilization, (nvml::Device, unsigned*, unsigned*))                                         \
  X(nvmlDeviceGetOfaUtilization, (nvml::Device, unsigned*, unsigned*))                                         \
  X(nvmlDeviceGetClockInfo, (nvml::Device, nvml::ClockType, unsigned*))                                        \
  X(nvmlDeviceGetMaxClockInfo, (nvml::Device, nvml::ClockType, unsigned*))                                     \
  X(nvmlDeviceGetClock, (nvml::Device, nvml::ClockType, nvml::ClockId, unsigned*))                             \
  X(nvmlDeviceGetApplicationsClock, (nvml::Device, nvml::ClockType, unsigned*))                                \
  X(nvmlDeviceGetDefaultApplicationsClock, (nvml::Device, nvml::ClockType, unsigned*))                         \
  X(nvmlDeviceGetPerformanceState, (nvml::Device, nvml::PerformanceState*))                                    \
  X(nvmlDeviceGetPowerState, (nvml::Device, nvml::PerformanceState*))                                          \
  X(nvmlDeviceGetCurrentClocksEventReasons, (nvml::Device, unsigned long long*))                               \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvml::Device, unsigned long long*))                            \
  X(nvmlDeviceGetSupportedClocksEventReasons, (nvml::Device, unsigned long long*))                             \
  X(nvmlDeviceGetSupportedClocksThrottleReasons, (nvml::Device, unsigned long long*))                          \
  X(nvmlDeviceGetViolationStatus, (nvml::Device, int, nvml::ViolationTime*))                                   \
  X(nvmlDeviceGetPowerUsage, (nvml::Device, unsigned*))                                                        \
  X(nvmlDeviceGetPowerManagementMode, (nvml::Device, nvml::EnableState*))                                      \
  X(nvmlDeviceGetPowerManagementLimit, (nvml::Device, unsigned*))                                              \
  X(nvmlDeviceGetEnforcedPowerLimit, (nvml::Device, unsigned*))                                                \
  X(nvmlDeviceGetPowerManagementDefaultLimit, (nvml::Device, unsigned*))                                       \
  X(nvmlDeviceGetPowerManagementLimitConstraints, (nvml::Device, unsigned*, unsigned*))                        \
  X(nvmlDeviceGetTotalEnergyConsumption, (nvml::Device, unsigned long long*))                                  \
  X(nvmlDeviceGetTemperature, (nvml::Device, nvml::TemperatureSensor, unsigned*))                              \
  X(nvmlDeviceGetTemperatureV, (nvml::Device, nvml::TemperatureV1*))                                           \
  X(nvmlDeviceGetTemperatureThreshold, (nvml::Device, nvml::TemperatureThreshold, unsigned*))                  \
  X(nvmlDeviceGetFanSpeed, (nvml::Device, unsigned*))                                                          \
  X(nvmlDeviceGetFanSpeed_v2, (nvml::Device, unsigned, unsigned*))                                             \
  X(nvmlDeviceGetNumFans, (nvml::Device, unsigned*))                                                           \
  X(nvmlDeviceGetFanSpeedRPM, (nvml::Device, nvml::FanSpeedInfo*))                                             \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (nvml::Device, unsigned*))                                            \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (nvml::Device, unsigned*))                                             \
  X(nvmlDeviceGetGpuMaxPcieLinkGeneration, (nvml::Device, unsigned*))                                          \
  X(nvmlDeviceGetCurrPcieLinkWidth, (nvml::Device, unsigned*))                                                 \
  X(nvmlDeviceGetMaxPcieLinkWidth, (nvml::Device, unsigned*))                                                  \
  X(nvmlDeviceGetPcieThroughput, (nvml::Device, nvml::PcieCounter, unsigned*))                                 \
  X(nvmlDeviceGetPcieReplayCounter, (nvml::Device, unsigned*))                                                 \
  X(nvmlDeviceGetNvLinkState, (nvml::Device, unsigned, nvml::EnableState*))                                    \
  X(nvmlDeviceGetNvLinkVersion, (nvml::Device, unsigned, unsigned*))                                           \
  X(nvmlDeviceGetNvLinkCapability, (nvml::Device, unsigned, nvml::NvLinkCapability, unsigned*))                \
  X(nvmlDeviceGetNvLinkRemotePciInfo, (nvml::Device, unsigned, nvml::PciInfo*))                                \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvml::Device, unsigned, nvml::PciInfo*))                             \
  X(nvmlDeviceGetNvLinkRemoteDeviceType, (nvml::Device, unsigned, nvml::NvLinkDeviceType*))                    \
  X(nvmlDeviceGetNvLinkErrorCounter, (nvml::Device, unsigned, int, unsigned long long*))                       \
  X(nvmlDeviceGetEccMode, (nvml::Device, nvml::EnableState*, nvml::EnableState*))                              \
  X(nvmlDeviceGetTotalEccErrors, (nvml::Device, nvml::MemoryErrorType, nvml::EccCounter, unsigned long long*)) \
  X(nvmlDeviceGetMemoryErrorCounter,                                                                           \
    (nvml::Device, nvml::MemoryErrorType, nvml::EccCounter, int, unsigned long long*))                         \
  X(nvmlDeviceGetRemappedRows, (nvml::Device, unsigned*, unsigned*, unsigned*, unsigned*))                     \
  X(nvmlDeviceGetRetiredPages, (nvml::Device, nvml::RetirementCause, unsigned*, unsigned long long*))          \
  X(nvmlDeviceGetRetiredPages_v2,                                                                              \
    (nvml::Device, nvml::RetirementCause, unsigned*, unsigned long long*, unsigned long long*))                \
  X(nvmlDeviceGetRetiredPagesPendingStatus, (nvml::Device, nvml::EnableState*))                                \
  X(nvmlDeviceGetFieldValues, (nvml::Device, int, nvml::FieldValue*))                                          \
  X(nvmlDeviceGetSamples, (nvml::Device, int, unsigned long long, nvml::ValueType*, unsigned*, nvml::Sample*))

#define GW_NVML_OTHER_FUNCTIONS(X)                                                                                   \
  X(nvmlDeviceGetComputeRunningProcesses, (nvml::Device, unsigned*, nvml::ProcessInfoV1*))                           \
  X(nvmlDeviceGetComputeRunningProcesses_v2, (nvml::Device, unsigned*, nvml::ProcessInfoV2*))                        \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (nvml::Device, unsigned*, nvml::ProcessInfoV2*))                        \
  X(nvmlDeviceGetGraphicsRunningProcesses, (nvml::Device, unsigned*, nvml::ProcessInfoV1*))                          \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2, (nvml::Device, unsigned*, nvml::ProcessInfoV2*))                       \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvml::Device, unsigned*, nvml::ProcessInfoV2*))                       \
  X(nvmlDeviceGetMPSComputeRunningProcesses, (nvml::Device, unsigned*, nvml::ProcessInfoV1*))                        \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v2, (nvml::Device, unsigned*, nvml::ProcessInfoV2*))                     \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3, (nvml::Device, unsigned*, nvml::ProcessInfoV2*))                     \
  X(nvmlDeviceGetRunningProcessDetailList, (nvml::Device, nvml::ProcessDetailList*))                                 \
  X(nvmlDeviceGetConfComputeMemSizeInfo, (nvml::Device, nvml::ConfComputeMemSizeInfo*))                              \
  X(nvmlDeviceGetProcessUtilization, (nvml::Device, nvml::ProcessUtilizationSample*, unsigned*, unsigned long long)) \
  X(nvmlDeviceGetProcessesUtilizationInfo, (nvml::Device, nvml::ProcessesUtilizationInfo*))                          \
  X(nvmlDeviceGetMigMode, (nvml::Device, unsigned*, unsigned*))                                                      \
  X(nvmlDeviceGetMaxMigDeviceCount, (nvml::Device, unsigned*))                                                       \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (nvml::Device, unsigned, nvml::Device*))                                    \
  X(nvmlDeviceIsMigDeviceHandle, (nvml::Device, unsigned*))                                                          \
  X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (nvml::Device, nvml::Device*))                                     \
  X(nvmlDeviceGetGpuInstanceId, (nvml::Device, unsigned*))                                                           \
  X(nvmlDeviceGetComputeInstanceId, (nvml::Device, unsigned*))                                                       \
  X(nvmlDeviceGetAttributes, (nvml::Device, nvml::DeviceAttributes*))                                                \
  X(nvmlDeviceGetAttributes_v2, (nvml::Device, nvml::DeviceAttributes*))                                             \
  X(nvmlEventSetCreate, (nvml::EventSet*))                                                                           \
  X(nvmlDeviceGetSupportedEventTypes, (nvml::Device, unsigned long long*))                                           \
  X(nvmlDeviceRegisterEvents, (nvml::Device, unsigned long long, nvml::EventSet))                                    \
  X(nvmlEventSetWait, (nvml::EventSet, nvml::EventData*, unsigned))                                                  \
  X(nvmlEventSetWait_v2, (nvml::EventSet, nvml::EventData*, unsigned))                                               \
  X(nvmlEventSetFree, (nvml::EventSet))                                                                              \
  X(nvmlGpmQueryDeviceSupport, (nvml::Device, nvml::GpmSupport*))                                                    \
  X(nvmlGpmSampleAlloc, (nvml::GpmSample*))                                                                          \
  X(nvmlGpmSampleFree, (nvml::GpmSample))                                                                            \
  X(nvmlGpmSampleGet, (nvml::Device, nvml::GpmSample))                                                               \
  X(nvmlGpmMigSampleGet, (nvml::Device, unsigned, nvml::GpmSample))                                                  \
  X(nvmlGpmMetricsGet, (nvml::GpmMetricsGet*))

namespace gpuwright::nvml {
using ErrorString = const char* (*)(Return);
}
