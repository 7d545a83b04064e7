// The words of Huawei's DCMI that are spoken here. The library belongs to the driver and is opened at run time.
// Declarations, units and codes: Huawei, "Ascend 910 DCMI API Reference" (driver 24.x; dcmi_interface_api.h 6.0.0).
#pragma once

namespace gpuwright::device::dcmi {

inline constexpr int kOk = 0;
inline constexpr int kNotPermitted = -8002, kTimeout = -8006, kNoSuchDevice = -8008, kNotReady = -8012,
                     kNotInContainer = -8013, kUpgrading = -8017, kOccupied = -8020, kNotSupported = -8255;

inline constexpr int kMostCards = 64;
inline constexpr int kMostProcesses = 32;  // "at most 32"

enum class UnitType : int { npu = 0 };
enum class Rate : int { ddr_bandwidth = 5, ai_core = 2, hbm_bandwidth = 10 };   // percent
enum class Frequency : int { ddr = 1, hbm = 6, ai_core = 7, ai_core_max = 9 };  // MHz
enum class EccOf : int { ddr = 0, hbm = 2 };

struct ChipInfo {
  unsigned char type[32], name[32], version[32];
  unsigned ai_cores;
};
struct PcieInfo {
  unsigned vendor, subvendor, device, subdevice;
  int domain;
  unsigned bus, slot, function;
  unsigned char reserved[32];
};
struct HbmInfo {
  unsigned long long size;  // MB; KB of dcmi_get_hbm_info
  unsigned frequency;
  unsigned long long used;
  int temperature;
  unsigned bandwidth_percent;
};
struct MemoryInfo {
  unsigned long long size;  // MB
  unsigned frequency, used_percent;
};
struct MemoryInfoV3 {
  unsigned long long size, available;  // MB
  unsigned frequency;
  unsigned long huge_page_size, huge_pages, huge_pages_free;
  unsigned used_percent;
  unsigned char reserved[60];
};
struct EccInfo {
  int enabled;
  unsigned single_bit, double_bit, all_single_bit, all_double_bit;  // since power-on; over the device's life
  unsigned single_bit_pages, double_bit_pages;                      // isolated
};
struct ProcessMemory {
  int pid;  // of the host
  unsigned long bytes;
};
static_assert(sizeof(PcieInfo) == 64 && sizeof(MemoryInfo) == 16 && sizeof(HbmInfo) == 32);

}  // namespace gpuwright::device::dcmi
