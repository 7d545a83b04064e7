// libdcmi, opened at run time, each function found alone: what a driver lacks is not_supported, no more.
#pragma once

#include <string>

#include "device/ascend/dcmi_abi.h"
#include "device/reading.h"

namespace gpuwright::device::dcmi {

struct Library {
  explicit Library(const std::string& name);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  bool is_open() const { return handle_ != nullptr; }
  const std::string& trouble() const { return trouble_; }  // why it could not be opened

  int (*init)() = nullptr;
  int (*card_list)(int*, int*, int) = nullptr;
  int (*device_id_in_card)(int, int*, int*, int*) = nullptr;
  int (*device_num_in_card)(int, int*) = nullptr;
  int (*device_type)(int, int, UnitType*) = nullptr;
  int (*chip_info)(int, int, ChipInfo*) = nullptr;
  int (*pcie_info)(int, int, PcieInfo*) = nullptr;
  int (*hbm_info)(int, int, HbmInfo*) = nullptr;
  int (*hbm_info_in_kb)(int, int, HbmInfo*) = nullptr;
  int (*memory_info_v3)(int, int, MemoryInfoV3*) = nullptr;
  int (*memory_info)(int, int, MemoryInfo*) = nullptr;
  int (*utilization)(int, int, int, unsigned*) = nullptr;
  int (*frequency)(int, int, Frequency, unsigned*) = nullptr;
  int (*temperature)(int, int, int*) = nullptr;
  int (*power)(int, int, int*) = nullptr;
  int (*health)(int, int, unsigned*) = nullptr;
  int (*error_codes)(int, int, int*, unsigned*, unsigned) = nullptr;
  int (*error_text)(int, int, unsigned, unsigned char*, int) = nullptr;
  int (*ecc_info)(int, int, EccOf, EccInfo*) = nullptr;
  int (*processes)(int, int, ProcessMemory*, int*) = nullptr;
  int (*logic_id)(int*, int, int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*library_version)(char*, unsigned) = nullptr;

 private:
  template <class Function>
  void find(Function& function, std::initializer_list<const char*> names);

  void* handle_ = nullptr;
  std::string trouble_;
};

Why why_of_code(int code);

}  // namespace gpuwright::device::dcmi
