// The C ABI of NVIDIA's management library: what src/sim answers and src/device asks, so that both speak of the same
// bytes. Written from the "NVML API Reference Guide"; sizes and values are those of nvml.h 13.5 on x86-64 and arm64.
// The driver's library is opened at run time; nothing links against it. The functions stand in nvml_functions.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwright::nvml {

// ---------------------------------------------------------------- return codes

using Return = int;
inline constexpr Return kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4,
                        kAlreadyInitialized = 5, kNotFound = 6, kInsufficientSize = 7, kInsufficientPower = 8,
                        kDriverNotLoaded = 9, kTimeout = 10, kIrqIssue = 11, kLibraryNotFound = 12,
                        kFunctionNotFound = 13, kCorruptedInforom = 14, kGpuIsLost = 15, kResetRequired = 16,
                        kOperatingSystem = 17, kLibRmVersionMismatch = 18, kInUse = 19, kMemory = 20, kNoData = 21,
                        kVgpuEccNotSupported = 22, kInsufficientResources = 23, kFreqNotSupported = 24,
                        kArgumentVersionMismatch = 25, kDeprecated = 26, kNotReady = 27, kGpuNotFound = 28,
                        kInvalidState = 29, kUnknown = 999;

// ---------------------------------------------------------------- handles and sizes of texts

using Device = struct DeviceHandle*;  // of a GPU or of a MIG instance
using EventSet = struct EventSetHandle*;
using GpuInstance = struct GpuInstanceHandle*;
using ComputeInstance = struct ComputeInstanceHandle*;
using GpmSample = struct GpmSampleHandle*;

inline constexpr unsigned kNameSize = 96, kUuidSize = 96, kSerialSize = 30, kVbiosSize = 32, kVersionSize = 80,
                          kPartNumberSize = 80, kInforomVersionSize = 16, kProcessNameSize = 64;
inline constexpr unsigned kNoInstance = 0xFFFFFFFF;                           // gi/ci of a process outside MIG
inline constexpr unsigned long long kMemoryNotAvailable = ~std::uint64_t{0};  // usedGpuMemory that nobody knows (WDDM)

// ---------------------------------------------------------------- enums

using EnableState = int;  // 0 off, 1 on

enum ClockType : int { kClockGraphics = 0, kClockSm = 1, kClockMemory = 2, kClockVideo = 3 };
enum ClockId : int {
  kClockCurrent = 0,
  kClockApplicationTarget = 1,
  kClockDefaultApplicationTarget = 2,
  kClockCustomerBoostMax = 3
};
enum TemperatureSensor : int { kTemperatureGpu = 0, kTemperatureGpuMax = 1 };
enum TemperatureThreshold : int {
  kThresholdShutdown = 0,
  kThresholdSlowdown = 1,
  kThresholdMemoryMax = 2,
  kThresholdGpuMax = 3,
};
enum PcieCounter : int { kPcieSent = 0, kPcieReceived = 1 };
enum MemoryErrorType : int { kErrorCorrected = 0, kErrorUncorrected = 1 };
enum EccCounter : int { kEccVolatile = 0, kEccAggregate = 1 };
enum RetirementCause : int { kRetiredSingleBit = 0, kRetiredDoubleBit = 1 };
enum ComputeMode : int {
  kComputeDefault = 0,
  kComputeExclusiveThread = 1,
  kComputeProhibited = 2,
  kComputeExclusiveProcess = 3
};
enum PerformanceState : int { kPerformanceStateMax = 0, kPerformanceStateMin = 15, kPerformanceStateUnknown = 32 };
enum ProcessMode : unsigned { kModeCompute = 0, kModeGraphics = 1, kModeMps = 2, kModeAll = 3 };
enum Architecture : unsigned {
  kKepler = 2,
  kMaxwell = 3,
  kPascal = 4,
  kVolta = 5,
  kTuring = 6,
  kAmpere = 7,
  kAda = 8,
  kHopper = 9,
  kBlackwell = 10,
  kRubin = 13,
  kArchitectureUnknown = 0xFFFFFFFF,
};
enum Brand : int {
  kBrandUnknown = 0,
  kBrandQuadro = 1,
  kBrandTesla = 2,
  kBrandNvs = 3,
  kBrandGrid = 4,
  kBrandGeForce = 5,
  kBrandTitan = 6,
  kBrandQuadroRtx = 12,
  kBrandNvidiaRtx = 13,
  kBrandNvidia = 14,
  kBrandGeForceRtx = 15,
  kBrandTitanRtx = 16,
};
enum TopologyLevel : int {
  kTopologyInternal = 0,     // on one board
  kTopologySingle = 10,      // one PCIe switch between
  kTopologyMultiple = 20,    // several PCIe switches, no host bridge
  kTopologyHostBridge = 30,  // through a host bridge
  kTopologyNode = 40,        // through host bridges of one NUMA node
  kTopologySystem = 50,      // between NUMA nodes
};
enum P2pCapability : int { kP2pRead = 0, kP2pWrite = 1, kP2pNvLink = 2, kP2pAtomics = 3, kP2pPci = 4 };
enum P2pStatus : int {
  kP2pOk = 0,
  kP2pChipsetNotSupported = 1,
  kP2pGpuNotSupported = 2,
  kP2pIohTopologyNotSupported = 3,
  kP2pDisabledByRegkey = 4,
  kP2pNotSupported = 5,
  kP2pUnknown = 6,
};
enum NvLinkDeviceType : int { kNvLinkGpu = 0, kNvLinkIbmNpu = 1, kNvLinkSwitch = 2, kNvLinkUnknown = 255 };
enum NvLinkCapability : int { kNvLinkCapP2p = 0, kNvLinkCapSystemMemory = 1, kNvLinkCapValid = 5 };
enum AffinityScope : unsigned { kAffinityNode = 0, kAffinitySocket = 1 };
enum DeviceRecoveryAction : unsigned {
  kRecoverNothing = 0,
  kRecoverGpuReset = 1,
  kRecoverNodeReboot = 2,
  kRecoverDrainP2p = 3,
  kRecoverDrainAndReset = 4,
  kRecoverImexDomain = 5,
  kRecoverBusReset = 6,
  kRecoverSystemReboot = 7,
};

namespace event {  // bits of nvmlDeviceRegisterEvents and EventData::event_type
inline constexpr unsigned long long kSingleBitEcc = 0x1, kDoubleBitEcc = 0x2, kPerformanceState = 0x4, kXid = 0x8,
                                    kClock = 0x10, kPowerSource = 0x80, kMigConfiguration = 0x100,
                                    kGpuUnavailable = 0x4000, kRecoveryAction = 0x8000;
}

namespace clock_reason {  // of nvmlDeviceGetCurrentClocksEventReasons
inline constexpr unsigned long long kIdle = 0x1, kApplicationClocks = 0x2, kSoftwarePowerCap = 0x4,
                                    kHardwareSlowdown = 0x8, kSyncBoost = 0x10, kSoftwareThermal = 0x20,
                                    kHardwareThermal = 0x40, kHardwarePowerBrake = 0x80, kDisplayClocks = 0x100;
}

namespace field {  // ids of nvmlDeviceGetFieldValues
enum : unsigned {
  kEccCurrent = 1,
  kEccPending = 2,
  kEccCorrectedVolatile = 3,
  kEccUncorrectedVolatile = 4,
  kEccCorrectedAggregate = 5,
  kEccUncorrectedAggregate = 6,
  kRetiredSingleBit = 29,
  kRetiredDoubleBit = 30,
  kRetiredPending = 31,
  kPolicyPower = 74,  // 74..79: nanoseconds that clocks were held down
  kPolicyThermal = 75,
  kPolicySyncBoost = 76,
  kPolicyBoardLimit = 77,
  kPolicyLowUtilization = 78,
  kPolicyReliability = 79,
  kMemoryTemperature = 82,
  kTotalEnergy = 83,  // mJ
  kNvLinkCount = 91,
  kPcieReplays = 94,
  kNvLinkDataSent = 138,  // 138..141: KiB; scope: the link, or kAllLinks
  kNvLinkDataReceived = 139,
  kNvLinkRawSent = 140,
  kNvLinkRawReceived = 141,
  kRemappedCorrected = 142,
  kRemappedUncorrected = 143,
  kRemappedPending = 144,
  kRemappedFailure = 145,
  kNvLinkRemoteId = 146,
  kNvSwitchLinks = 147,
  kNvLinkSpeed = 164,  // scope: the link
  kNvLinkState = 165,
  kPowerAverage = 185,  // 185..190: mW; scope: 0 GPU, 1 module, 2 memory
  kPowerInstant = 186,
  kPowerMinLimit = 187,
  kPowerMaxLimit = 188,
  kPowerDefaultLimit = 189,
  kPowerCurrentLimit = 190,
  kEnergy = 191,
  kPowerRequestedLimit = 192,
  kShutdownTlimit = 193,  // 193..196: degrees from the limit
  kSlowdownTlimit = 194,
  kMemoryMaxTlimit = 195,
  kGpuMaxTlimit = 196,
  kPcieSentBytes = 197,
  kPcieReceivedBytes = 198,
  kNvLinkSentBytes = 202,  // Blackwell and later; scope: the link
  kNvLinkReceivedBytes = 204,
  kRecoveryAction = 230,  // DeviceRecoveryAction
  kSoftwareThermalNs = 269,
  kHardwareThermalNs = 270,
  kHardwarePowerBrakeNs = 271,
};
inline constexpr unsigned kAllLinks = ~0U;
}  // namespace field

namespace gpm {  // ids of nvmlGpmMetricsGet; percentages are 0..100
inline constexpr unsigned kGraphicsUtilization = 1, kSmUtilization = 2, kSmOccupancy = 3, kIntegerUtilization = 4,
                          kAnyTensorUtilization = 5, kDramBandwidthUtilization = 10, kPcieSentPerSecond = 20,
                          kPcieReceivedPerSecond = 21, kNvLinkReceivedPerSecond = 60, kNvLinkSentPerSecond = 61;
inline constexpr unsigned kMetricsGetVersion = 1, kSupportVersion = 1;
inline constexpr unsigned kMostMetrics = 477;  // NVML_GPM_METRIC_MAX; 98 in nvml.h 12.0, 333 in 13.3
}  // namespace gpm

enum ValueType : int {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

// ---------------------------------------------------------------- structs

// What nvml.h calls NVML_STRUCT_VERSION.
template <class Struct>
constexpr unsigned version_of(unsigned number) {
  return static_cast<unsigned>(sizeof(Struct)) | number << 24;
}

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Bar1Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id;  // device << 16 | vendor
  unsigned pci_subsystem_id;
  char bus_id[32];  // "00000000:01:00.0"
};
struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used_gpu_memory;
};
struct ProcessInfoV2 {
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance, compute_instance;
};
// Also what early 535 drivers fill in for nvmlDeviceGetComputeRunningProcesses_v3 and its like.
struct ProcessDetail {
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance, compute_instance;
  unsigned long long used_protected_memory;
};
struct ProcessDetailList {
  unsigned version;
  unsigned mode;  // ProcessMode
  unsigned count;
  ProcessDetail* processes;
};
struct ProcessUtilizationSample {
  unsigned pid;
  unsigned long long timestamp_us;
  unsigned sm, memory, encoder, decoder;  // percent
};
struct ProcessUtilizationInfo {
  unsigned long long timestamp_us;
  unsigned pid;
  unsigned sm, memory, encoder, decoder, jpeg, ofa;
};
struct ProcessesUtilizationInfo {
  unsigned version;
  unsigned count;
  unsigned long long last_seen_us;
  ProcessUtilizationInfo* samples;
};
union Value {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
  unsigned short as_unsigned_short;
};
struct FieldValue {
  unsigned field_id, scope_id;
  long long timestamp_us, latency_us;
  ValueType value_type;
  Return result;
  Value value;
};
struct EventData {
  Device device;
  unsigned long long event_type;
  unsigned long long event_data;  // of an Xid: its code, 999 when unknown
  unsigned gpu_instance, compute_instance;
};
struct DeviceAttributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_instance_slices, compute_instance_slices;
  unsigned long long memory_mib;
};
struct TemperatureV1 {
  unsigned version;
  TemperatureSensor sensor;
  int temperature;
};
struct FanSpeedInfo {
  unsigned version, fan, rpm;
};
struct ViolationTime {
  unsigned long long reference_us, violation_ns;
};
struct Sample {
  unsigned long long timestamp_us;
  Value value;
};
struct ConfComputeMemSizeInfo {
  unsigned long long protected_kib, unprotected_kib;
};
struct GpmMetric {
  unsigned id;
  Return result;
  double value;
  const char *short_name, *long_name, *unit;
};
struct GpmMetricsGet {
  unsigned version, count;
  GpmSample earlier, later;
  GpmMetric metrics[gpm::kMostMetrics];  // the library looks at the first `count` only
};
struct GpmSupport {
  unsigned version, supported;
};

static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && sizeof(Bar1Memory) == 24 && sizeof(Utilization) == 8);
static_assert(version_of<MemoryV2>(2) == 0x02000028);
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfoV2) == 24 && sizeof(ProcessDetail) == 32);
static_assert(version_of<ProcessDetailList>(1) == 0x01000018 && version_of<ProcessesUtilizationInfo>(1) == 0x01000018);
static_assert(sizeof(ProcessUtilizationSample) == 32 && sizeof(ProcessUtilizationInfo) == 40);
static_assert(sizeof(Value) == 8 && sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
static_assert(sizeof(EventData) == 32 && sizeof(DeviceAttributes) == 40 && sizeof(Sample) == 16);
static_assert(version_of<TemperatureV1>(1) == 0x0100000c && version_of<FanSpeedInfo>(1) == 0x0100000c);
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetricsGet, metrics) == 24 && sizeof(GpmSupport) == 8);
static_assert(sizeof(ViolationTime) == 16 && sizeof(ConfComputeMemSizeInfo) == 16);

}  // namespace gpuwright::nvml
