// Compiled, not run: every declaration, struct, field and constant of base/nvml_abi.h and base/nvml_functions.h against
// NVIDIA's own nvml.h (PyPI nvidia-nvml-dev, which ./test puts into build/venv). tests/oracle/run_nvml_abi does it.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // else a macro hides each first version
#include <nvml.h>

#include <cstddef>
#include <type_traits>

#include "base/nvml_functions.h"

namespace {

namespace nvml = gpuwright::nvml;

// The same bytes in the same place: pointers to like things, numbers of one size and kind.
template <class A, class B>
constexpr bool same_argument() {
  using PlainA = std::remove_cv_t<A>;
  using PlainB = std::remove_cv_t<B>;
  if constexpr (std::is_pointer_v<PlainA> && std::is_pointer_v<PlainB>) {
    using ToA = std::remove_pointer_t<PlainA>;
    using ToB = std::remove_pointer_t<PlainB>;
    if constexpr (requires { sizeof(ToA); } && requires { sizeof(ToB); }) return same_argument<ToA, ToB>();
    return !requires { sizeof(ToA); } && !requires { sizeof(ToB); };  // handles
  } else if constexpr (std::is_class_v<PlainA> || std::is_union_v<PlainA>) {
    return sizeof(PlainA) == sizeof(PlainB) && alignof(PlainA) == alignof(PlainB) && std::is_class_v<PlainA> == std::is_class_v<PlainB>;
  } else {
    return sizeof(PlainA) == sizeof(PlainB) && std::is_floating_point_v<PlainA> == std::is_floating_point_v<PlainB> &&
           std::is_pointer_v<PlainA> == std::is_pointer_v<PlainB>;
  }
}

template <class A, class B>
struct Same : std::false_type {};
template <class... ArgumentsA, class... ArgumentsB>
  requires(sizeof...(ArgumentsA) == sizeof...(ArgumentsB))
struct Same<nvml::Return(ArgumentsA...), nvmlReturn_t(ArgumentsB...)>
    : std::bool_constant<(same_argument<ArgumentsA, ArgumentsB>() && ...)> {};

#define SAME_FUNCTION(function, arguments) \
  static_assert(Same<nvml::Return arguments, decltype(::function)>::value, #function);
GW_NVML_FUNCTIONS(SAME_FUNCTION)
static_assert(std::is_same_v<decltype(::nvmlErrorString), const char*(nvmlReturn_t)>);

#define SAME_SIZE(ours, theirs) static_assert(sizeof(nvml::ours) == sizeof(::theirs), #ours)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                  \
  static_assert(offsetof(nvml::ours, our_field) == offsetof(::theirs, their_field) &&     \
                    sizeof(nvml::ours::our_field) == sizeof(::theirs::their_field),       \
                #ours "::" #our_field)

SAME_SIZE(Memory, nvmlMemory_t);
SAME_FIELD(Memory, total, nvmlMemory_t, total);
SAME_FIELD(Memory, free, nvmlMemory_t, free);
SAME_FIELD(Memory, used, nvmlMemory_t, used);
SAME_SIZE(MemoryV2, nvmlMemory_v2_t);
SAME_FIELD(MemoryV2, total, nvmlMemory_v2_t, total);
SAME_FIELD(MemoryV2, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(MemoryV2, free, nvmlMemory_v2_t, free);
SAME_FIELD(MemoryV2, used, nvmlMemory_v2_t, used);
SAME_SIZE(Bar1Memory, nvmlBAR1Memory_t);
SAME_FIELD(Bar1Memory, total, nvmlBAR1Memory_t, bar1Total);
SAME_FIELD(Bar1Memory, free, nvmlBAR1Memory_t, bar1Free);
SAME_FIELD(Bar1Memory, used, nvmlBAR1Memory_t, bar1Used);
SAME_SIZE(Utilization, nvmlUtilization_t);
SAME_FIELD(Utilization, gpu, nvmlUtilization_t, gpu);
SAME_FIELD(Utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(PciInfo, nvmlPciInfo_t);
SAME_FIELD(PciInfo, bus_id_legacy, nvmlPciInfo_t, busIdLegacy);
SAME_FIELD(PciInfo, domain, nvmlPciInfo_t, domain);
SAME_FIELD(PciInfo, bus, nvmlPciInfo_t, bus);
SAME_FIELD(PciInfo, device, nvmlPciInfo_t, device);
SAME_FIELD(PciInfo, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME_FIELD(PciInfo, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_FIELD(PciInfo, bus_id, nvmlPciInfo_t, busId);
SAME_SIZE(ProcessInfoV1, nvmlProcessInfo_v1_t);
SAME_FIELD(ProcessInfoV1, used_gpu_memory, nvmlProcessInfo_v1_t, usedGpuMemory);
SAME_SIZE(ProcessInfoV2, nvmlProcessInfo_v2_t);
SAME_FIELD(ProcessInfoV2, pid, nvmlProcessInfo_v2_t, pid);
SAME_FIELD(ProcessInfoV2, used_gpu_memory, nvmlProcessInfo_v2_t, usedGpuMemory);
SAME_FIELD(ProcessInfoV2, gpu_instance, nvmlProcessInfo_v2_t, gpuInstanceId);
SAME_FIELD(ProcessInfoV2, compute_instance, nvmlProcessInfo_v2_t, computeInstanceId);
SAME_SIZE(ProcessDetail, nvmlProcessDetail_v1_t);
SAME_FIELD(ProcessDetail, used_gpu_memory, nvmlProcessDetail_v1_t, usedGpuMemory);
SAME_FIELD(ProcessDetail, gpu_instance, nvmlProcessDetail_v1_t, gpuInstanceId);
SAME_FIELD(ProcessDetail, compute_instance, nvmlProcessDetail_v1_t, computeInstanceId);
SAME_FIELD(ProcessDetail, used_protected_memory, nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory);
SAME_SIZE(ProcessDetailList, nvmlProcessDetailList_v1_t);
SAME_FIELD(ProcessDetailList, mode, nvmlProcessDetailList_v1_t, mode);
SAME_FIELD(ProcessDetailList, count, nvmlProcessDetailList_v1_t, numProcArrayEntries);
SAME_FIELD(ProcessDetailList, processes, nvmlProcessDetailList_v1_t, procArray);
SAME_SIZE(ProcessUtilizationSample, nvmlProcessUtilizationSample_t);
SAME_FIELD(ProcessUtilizationSample, timestamp_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_FIELD(ProcessUtilizationSample, sm, nvmlProcessUtilizationSample_t, smUtil);
SAME_FIELD(ProcessUtilizationSample, memory, nvmlProcessUtilizationSample_t, memUtil);
SAME_FIELD(ProcessUtilizationSample, encoder, nvmlProcessUtilizationSample_t, encUtil);
SAME_FIELD(ProcessUtilizationSample, decoder, nvmlProcessUtilizationSample_t, decUtil);
SAME_SIZE(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t);
SAME_FIELD(ProcessUtilizationInfo, pid, nvmlProcessUtilizationInfo_v1_t, pid);
SAME_FIELD(ProcessUtilizationInfo, sm, nvmlProcessUtilizationInfo_v1_t, smUtil);
SAME_FIELD(ProcessUtilizationInfo, memory, nvmlProcessUtilizationInfo_v1_t, memUtil);
SAME_FIELD(ProcessUtilizationInfo, encoder, nvmlProcessUtilizationInfo_v1_t, encUtil);
SAME_FIELD(ProcessUtilizationInfo, decoder, nvmlProcessUtilizationInfo_v1_t, decUtil);
SAME_FIELD(ProcessUtilizationInfo, jpeg, nvmlProcessUtilizationInfo_v1_t, jpgUtil);
SAME_FIELD(ProcessUtilizationInfo, ofa, nvmlProcessUtilizationInfo_v1_t, ofaUtil);
SAME_SIZE(ProcessesUtilizationInfo, nvmlProcessesUtilizationInfo_v1_t);
SAME_FIELD(ProcessesUtilizationInfo, count, nvmlProcessesUtilizationInfo_v1_t, processSamplesCount);
SAME_FIELD(ProcessesUtilizationInfo, last_seen_us, nvmlProcessesUtilizationInfo_v1_t, lastSeenTimeStamp);
SAME_FIELD(ProcessesUtilizationInfo, samples, nvmlProcessesUtilizationInfo_v1_t, procUtilArray);
SAME_SIZE(Value, nvmlValue_t);
SAME_FIELD(Value, as_double, nvmlValue_t, dVal);
SAME_FIELD(Value, as_int, nvmlValue_t, siVal);
SAME_FIELD(Value, as_unsigned, nvmlValue_t, uiVal);
SAME_FIELD(Value, as_unsigned_long, nvmlValue_t, ulVal);
SAME_FIELD(Value, as_unsigned_long_long, nvmlValue_t, ullVal);
SAME_FIELD(Value, as_long_long, nvmlValue_t, sllVal);
SAME_FIELD(Value, as_unsigned_short, nvmlValue_t, usVal);
SAME_SIZE(FieldValue, nvmlFieldValue_t);
SAME_FIELD(FieldValue, field_id, nvmlFieldValue_t, fieldId);
SAME_FIELD(FieldValue, scope_id, nvmlFieldValue_t, scopeId);
SAME_FIELD(FieldValue, timestamp_us, nvmlFieldValue_t, timestamp);
SAME_FIELD(FieldValue, latency_us, nvmlFieldValue_t, latencyUsec);
SAME_FIELD(FieldValue, value_type, nvmlFieldValue_t, valueType);
SAME_FIELD(FieldValue, result, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(FieldValue, value, nvmlFieldValue_t, value);
SAME_SIZE(EventData, nvmlEventData_t);
SAME_FIELD(EventData, device, nvmlEventData_t, device);
SAME_FIELD(EventData, event_type, nvmlEventData_t, eventType);
SAME_FIELD(EventData, event_data, nvmlEventData_t, eventData);
SAME_FIELD(EventData, gpu_instance, nvmlEventData_t, gpuInstanceId);
SAME_FIELD(EventData, compute_instance, nvmlEventData_t, computeInstanceId);
SAME_SIZE(DeviceAttributes, nvmlDeviceAttributes_t);
SAME_FIELD(DeviceAttributes, multiprocessors, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_FIELD(DeviceAttributes, copy_engines, nvmlDeviceAttributes_t, sharedCopyEngineCount);
SAME_FIELD(DeviceAttributes, decoders, nvmlDeviceAttributes_t, sharedDecoderCount);
SAME_FIELD(DeviceAttributes, encoders, nvmlDeviceAttributes_t, sharedEncoderCount);
SAME_FIELD(DeviceAttributes, jpegs, nvmlDeviceAttributes_t, sharedJpegCount);
SAME_FIELD(DeviceAttributes, ofas, nvmlDeviceAttributes_t, sharedOfaCount);
SAME_FIELD(DeviceAttributes, gpu_instance_slices, nvmlDeviceAttributes_t, gpuInstanceSliceCount);
SAME_FIELD(DeviceAttributes, compute_instance_slices, nvmlDeviceAttributes_t, computeInstanceSliceCount);
SAME_FIELD(DeviceAttributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
SAME_SIZE(TemperatureV1, nvmlTemperature_v1_t);
SAME_FIELD(TemperatureV1, sensor, nvmlTemperature_v1_t, sensorType);
SAME_FIELD(TemperatureV1, temperature, nvmlTemperature_v1_t, temperature);
SAME_SIZE(FanSpeedInfo, nvmlFanSpeedInfo_v1_t);
SAME_FIELD(FanSpeedInfo, fan, nvmlFanSpeedInfo_v1_t, fan);
SAME_FIELD(FanSpeedInfo, rpm, nvmlFanSpeedInfo_v1_t, speed);
SAME_SIZE(ViolationTime, nvmlViolationTime_t);
SAME_FIELD(ViolationTime, reference_us, nvmlViolationTime_t, referenceTime);
SAME_FIELD(ViolationTime, violation_ns, nvmlViolationTime_t, violationTime);
SAME_SIZE(Sample, nvmlSample_t);
SAME_FIELD(Sample, value, nvmlSample_t, sampleValue);
SAME_SIZE(ConfComputeMemSizeInfo, nvmlConfComputeMemSizeInfo_t);
SAME_FIELD(ConfComputeMemSizeInfo, unprotected_kib, nvmlConfComputeMemSizeInfo_t, unprotectedMemSizeKib);
SAME_SIZE(GpmMetric, nvmlGpmMetric_t);
SAME_FIELD(GpmMetric, id, nvmlGpmMetric_t, metricId);
SAME_FIELD(GpmMetric, result, nvmlGpmMetric_t, nvmlReturn);
SAME_FIELD(GpmMetric, value, nvmlGpmMetric_t, value);
SAME_FIELD(GpmMetric, unit, nvmlGpmMetric_t, metricInfo.unit);
SAME_FIELD(GpmMetricsGet, count, nvmlGpmMetricsGet_t, numMetrics);
SAME_FIELD(GpmMetricsGet, earlier, nvmlGpmMetricsGet_t, sample1);
SAME_FIELD(GpmMetricsGet, later, nvmlGpmMetricsGet_t, sample2);
static_assert(offsetof(nvml::GpmMetricsGet, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));
SAME_SIZE(GpmSupport, nvmlGpmSupport_t);
SAME_FIELD(GpmSupport, supported, nvmlGpmSupport_t, isSupportedDevice);

#define SAME_VALUE(ours, theirs) \
  static_assert(static_cast<unsigned long long>(nvml::ours) == static_cast<unsigned long long>(theirs), #ours)

SAME_VALUE(version_of<nvml::MemoryV2>(2), nvmlMemory_v2);
SAME_VALUE(version_of<nvml::ProcessDetailList>(1), nvmlProcessDetailList_v1);
SAME_VALUE(version_of<nvml::ProcessesUtilizationInfo>(1), nvmlProcessesUtilizationInfo_v1);
SAME_VALUE(version_of<nvml::TemperatureV1>(1), nvmlTemperature_v1);
SAME_VALUE(version_of<nvml::FanSpeedInfo>(1), nvmlFanSpeedInfo_v1);
SAME_VALUE(kMemoryNotAvailable, NVML_VALUE_NOT_AVAILABLE);

SAME_VALUE(kSuccess, NVML_SUCCESS);
SAME_VALUE(kUninitialized, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(kNotFound, NVML_ERROR_NOT_FOUND);
SAME_VALUE(kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(kTimeout, NVML_ERROR_TIMEOUT);
SAME_VALUE(kLibraryNotFound, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME_VALUE(kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(kResetRequired, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(kOperatingSystem, NVML_ERROR_OPERATING_SYSTEM);
SAME_VALUE(kLibRmVersionMismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(kMemory, NVML_ERROR_MEMORY);
SAME_VALUE(kNoData, NVML_ERROR_NO_DATA);
SAME_VALUE(kInsufficientResources, NVML_ERROR_INSUFFICIENT_RESOURCES);
SAME_VALUE(kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(kDeprecated, NVML_ERROR_DEPRECATED);
SAME_VALUE(kNotReady, NVML_ERROR_NOT_READY);
SAME_VALUE(kGpuNotFound, NVML_ERROR_GPU_NOT_FOUND);
SAME_VALUE(kInvalidState, NVML_ERROR_INVALID_STATE);
SAME_VALUE(kUnknown, NVML_ERROR_UNKNOWN);

SAME_VALUE(kClockGraphics, NVML_CLOCK_GRAPHICS);
SAME_VALUE(kClockSm, NVML_CLOCK_SM);
SAME_VALUE(kClockMemory, NVML_CLOCK_MEM);
SAME_VALUE(kClockVideo, NVML_CLOCK_VIDEO);
SAME_VALUE(kClockCurrent, NVML_CLOCK_ID_CURRENT);
SAME_VALUE(kClockCustomerBoostMax, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
SAME_VALUE(kTemperatureGpu, NVML_TEMPERATURE_GPU);
SAME_VALUE(kThresholdShutdown, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN);
SAME_VALUE(kThresholdSlowdown, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_VALUE(kThresholdMemoryMax, NVML_TEMPERATURE_THRESHOLD_MEM_MAX);
SAME_VALUE(kThresholdGpuMax, NVML_TEMPERATURE_THRESHOLD_GPU_MAX);
SAME_VALUE(kPcieSent, NVML_PCIE_UTIL_TX_BYTES);
SAME_VALUE(kPcieReceived, NVML_PCIE_UTIL_RX_BYTES);
SAME_VALUE(kErrorCorrected, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_VALUE(kErrorUncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_VALUE(kEccVolatile, NVML_VOLATILE_ECC);
SAME_VALUE(kEccAggregate, NVML_AGGREGATE_ECC);
SAME_VALUE(kRetiredSingleBit, NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS);
SAME_VALUE(kRetiredDoubleBit, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR);
SAME_VALUE(kComputeExclusiveThread, NVML_COMPUTEMODE_EXCLUSIVE_THREAD);
SAME_VALUE(kComputeProhibited, NVML_COMPUTEMODE_PROHIBITED);
SAME_VALUE(kComputeExclusiveProcess, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
SAME_VALUE(kPerformanceStateUnknown, NVML_PSTATE_UNKNOWN);
SAME_VALUE(kModeCompute, NVML_PROCESS_MODE_COMPUTE);
SAME_VALUE(kModeGraphics, NVML_PROCESS_MODE_GRAPHICS);
SAME_VALUE(kModeMps, NVML_PROCESS_MODE_MPS);
SAME_VALUE(kModeAll, NVML_PROCESS_MODE_ALL);
SAME_VALUE(kPascal, NVML_DEVICE_ARCH_PASCAL);
SAME_VALUE(kVolta, NVML_DEVICE_ARCH_VOLTA);
SAME_VALUE(kTuring, NVML_DEVICE_ARCH_TURING);
SAME_VALUE(kAmpere, NVML_DEVICE_ARCH_AMPERE);
SAME_VALUE(kAda, NVML_DEVICE_ARCH_ADA);
SAME_VALUE(kHopper, NVML_DEVICE_ARCH_HOPPER);
SAME_VALUE(kBlackwell, NVML_DEVICE_ARCH_BLACKWELL);
SAME_VALUE(kBrandTesla, NVML_BRAND_TESLA);
SAME_VALUE(kBrandGeForce, NVML_BRAND_GEFORCE);
SAME_VALUE(kBrandNvidiaRtx, NVML_BRAND_NVIDIA_RTX);
SAME_VALUE(kBrandNvidia, NVML_BRAND_NVIDIA);
SAME_VALUE(kTopologyInternal, NVML_TOPOLOGY_INTERNAL);
SAME_VALUE(kTopologySingle, NVML_TOPOLOGY_SINGLE);
SAME_VALUE(kTopologyMultiple, NVML_TOPOLOGY_MULTIPLE);
SAME_VALUE(kTopologyHostBridge, NVML_TOPOLOGY_HOSTBRIDGE);
SAME_VALUE(kTopologyNode, NVML_TOPOLOGY_NODE);
SAME_VALUE(kTopologySystem, NVML_TOPOLOGY_SYSTEM);
SAME_VALUE(kP2pNvLink, NVML_P2P_CAPS_INDEX_NVLINK);
SAME_VALUE(kP2pPci, NVML_P2P_CAPS_INDEX_PCI);
SAME_VALUE(kP2pOk, NVML_P2P_STATUS_OK);
SAME_VALUE(kP2pNotSupported, NVML_P2P_STATUS_NOT_SUPPORTED);
SAME_VALUE(kNvLinkGpu, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME_VALUE(kNvLinkSwitch, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(kNvLinkCapValid, NVML_NVLINK_CAP_VALID);
SAME_VALUE(kRecoverGpuReset, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
SAME_VALUE(kRecoverNodeReboot, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT);
SAME_VALUE(kRecoverDrainAndReset, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET);
SAME_VALUE(kRecoverSystemReboot, NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT);

SAME_VALUE(event::kSingleBitEcc, nvmlEventTypeSingleBitEccError);
SAME_VALUE(event::kDoubleBitEcc, nvmlEventTypeDoubleBitEccError);
SAME_VALUE(event::kXid, nvmlEventTypeXidCriticalError);
SAME_VALUE(event::kMigConfiguration, nvmlEventMigConfigChange);
SAME_VALUE(event::kGpuUnavailable, nvmlEventTypeGpuUnavailableError);
SAME_VALUE(event::kRecoveryAction, nvmlEventTypeGpuRecoveryAction);

SAME_VALUE(clock_reason::kIdle, nvmlClocksEventReasonGpuIdle);
SAME_VALUE(clock_reason::kApplicationClocks, nvmlClocksEventReasonApplicationsClocksSetting);
SAME_VALUE(clock_reason::kSoftwarePowerCap, nvmlClocksEventReasonSwPowerCap);
SAME_VALUE(clock_reason::kHardwareSlowdown, nvmlClocksThrottleReasonHwSlowdown);
SAME_VALUE(clock_reason::kSyncBoost, nvmlClocksEventReasonSyncBoost);
SAME_VALUE(clock_reason::kSoftwareThermal, nvmlClocksEventReasonSwThermalSlowdown);
SAME_VALUE(clock_reason::kHardwareThermal, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_VALUE(clock_reason::kHardwarePowerBrake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_VALUE(clock_reason::kDisplayClocks, nvmlClocksEventReasonDisplayClockSetting);

SAME_VALUE(field::kEccCurrent, NVML_FI_DEV_ECC_CURRENT);
SAME_VALUE(field::kEccCorrectedVolatile, NVML_FI_DEV_ECC_SBE_VOL_TOTAL);
SAME_VALUE(field::kEccUncorrectedVolatile, NVML_FI_DEV_ECC_DBE_VOL_TOTAL);
SAME_VALUE(field::kEccCorrectedAggregate, NVML_FI_DEV_ECC_SBE_AGG_TOTAL);
SAME_VALUE(field::kEccUncorrectedAggregate, NVML_FI_DEV_ECC_DBE_AGG_TOTAL);
SAME_VALUE(field::kRetiredSingleBit, NVML_FI_DEV_RETIRED_SBE);
SAME_VALUE(field::kRetiredDoubleBit, NVML_FI_DEV_RETIRED_DBE);
SAME_VALUE(field::kRetiredPending, NVML_FI_DEV_RETIRED_PENDING);
SAME_VALUE(field::kPolicyPower, NVML_FI_DEV_PERF_POLICY_POWER);
SAME_VALUE(field::kPolicyThermal, NVML_FI_DEV_PERF_POLICY_THERMAL);
SAME_VALUE(field::kPolicySyncBoost, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST);
SAME_VALUE(field::kPolicyBoardLimit, NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT);
SAME_VALUE(field::kPolicyLowUtilization, NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION);
SAME_VALUE(field::kPolicyReliability, NVML_FI_DEV_PERF_POLICY_RELIABILITY);
SAME_VALUE(field::kMemoryTemperature, NVML_FI_DEV_MEMORY_TEMP);
SAME_VALUE(field::kTotalEnergy, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME_VALUE(field::kNvLinkCount, NVML_FI_DEV_NVLINK_LINK_COUNT);
SAME_VALUE(field::kPcieReplays, NVML_FI_DEV_PCIE_REPLAY_COUNTER);
SAME_VALUE(field::kNvLinkDataSent, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(field::kNvLinkDataReceived, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SAME_VALUE(field::kNvLinkRawSent, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX);
SAME_VALUE(field::kNvLinkRawReceived, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX);
SAME_VALUE(field::kRemappedCorrected, NVML_FI_DEV_REMAPPED_COR);
SAME_VALUE(field::kRemappedUncorrected, NVML_FI_DEV_REMAPPED_UNC);
SAME_VALUE(field::kRemappedPending, NVML_FI_DEV_REMAPPED_PENDING);
SAME_VALUE(field::kRemappedFailure, NVML_FI_DEV_REMAPPED_FAILURE);
SAME_VALUE(field::kNvLinkRemoteId, NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID);
SAME_VALUE(field::kNvSwitchLinks, NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT);
SAME_VALUE(field::kNvLinkSpeed, NVML_FI_DEV_NVLINK_GET_SPEED);
SAME_VALUE(field::kNvLinkState, NVML_FI_DEV_NVLINK_GET_STATE);
SAME_VALUE(field::kPowerAverage, NVML_FI_DEV_POWER_AVERAGE);
SAME_VALUE(field::kPowerInstant, NVML_FI_DEV_POWER_INSTANT);
SAME_VALUE(field::kPowerMinLimit, NVML_FI_DEV_POWER_MIN_LIMIT);
SAME_VALUE(field::kPowerMaxLimit, NVML_FI_DEV_POWER_MAX_LIMIT);
SAME_VALUE(field::kPowerDefaultLimit, NVML_FI_DEV_POWER_DEFAULT_LIMIT);
SAME_VALUE(field::kPowerCurrentLimit, NVML_FI_DEV_POWER_CURRENT_LIMIT);
SAME_VALUE(field::kEnergy, NVML_FI_DEV_ENERGY);
SAME_VALUE(field::kPowerRequestedLimit, NVML_FI_DEV_POWER_REQUESTED_LIMIT);
SAME_VALUE(field::kShutdownTlimit, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT);
SAME_VALUE(field::kSlowdownTlimit, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT);
SAME_VALUE(field::kMemoryMaxTlimit, NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT);
SAME_VALUE(field::kGpuMaxTlimit, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT);
SAME_VALUE(field::kPcieSentBytes, NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
SAME_VALUE(field::kPcieReceivedBytes, NVML_FI_DEV_PCIE_COUNT_RX_BYTES);
SAME_VALUE(field::kNvLinkSentBytes, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES);
SAME_VALUE(field::kNvLinkReceivedBytes, NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES);
SAME_VALUE(field::kRecoveryAction, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
SAME_VALUE(field::kSoftwareThermalNs, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN);
SAME_VALUE(field::kHardwareThermalNs, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN);
SAME_VALUE(field::kHardwarePowerBrakeNs, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN);

SAME_VALUE(gpm::kGraphicsUtilization, NVML_GPM_METRIC_GRAPHICS_UTIL);
SAME_VALUE(gpm::kSmUtilization, NVML_GPM_METRIC_SM_UTIL);
SAME_VALUE(gpm::kSmOccupancy, NVML_GPM_METRIC_SM_OCCUPANCY);
SAME_VALUE(gpm::kAnyTensorUtilization, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME_VALUE(gpm::kDramBandwidthUtilization, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME_VALUE(gpm::kPcieSentPerSecond, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME_VALUE(gpm::kPcieReceivedPerSecond, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME_VALUE(gpm::kNvLinkReceivedPerSecond, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
SAME_VALUE(gpm::kNvLinkSentPerSecond, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
SAME_VALUE(gpm::kMetricsGetVersion, NVML_GPM_METRICS_GET_VERSION);
SAME_VALUE(gpm::kSupportVersion, NVML_GPM_SUPPORT_VERSION);

SAME_VALUE(kDouble, NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(kUnsignedInt, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(kUnsignedLong, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(kUnsignedLongLong, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(kSignedLongLong, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(kSignedInt, NVML_VALUE_TYPE_SIGNED_INT);
SAME_VALUE(kUnsignedShort, NVML_VALUE_TYPE_UNSIGNED_SHORT);

#ifdef SELF_TEST_FUNCTION  // each must fail to compile, else the checks above prove nothing
static_assert(Same<nvml::Return(nvml::Device, unsigned long long*), decltype(::nvmlDeviceGetIndex)>::value);
#endif
#ifdef SELF_TEST_ARGUMENTS
static_assert(Same<nvml::Return(nvml::Device), decltype(::nvmlDeviceGetIndex)>::value);
#endif
#ifdef SELF_TEST_FIELD
SAME_FIELD(Memory, free, nvmlMemory_t, used);
#endif
#ifdef SELF_TEST_VALUE
SAME_VALUE(kGpuIsLost, NVML_ERROR_RESET_REQUIRED);
#endif

}  // namespace
