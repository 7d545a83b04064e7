// NVIDIA's management library as a driver left it: opened at run time, each function looked up alone, since no two
// driver versions have the same ones. Says nothing about devices.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/nvml_functions.h"
#include "device/source.h"

namespace gpuwright::device::nvidia {

// One function of the library; empty where the driver lacks it.
template <class Signature>
struct Function;
template <class... Parameters>
struct Function<nvml::Return(Parameters...)> {
  const char* name;
  nvml::Return (*pointer)(Parameters...) = nullptr;
  explicit operator bool() const { return pointer != nullptr; }
};

struct Functions {
#define GW_NVML_MEMBER(name, arguments) Function<nvml::Return arguments> name{#name};
  GW_NVML_FUNCTIONS(GW_NVML_MEMBER)
#undef GW_NVML_MEMBER
};

// Gives the address of a function by name, or nullptr.
using Lookup = std::function<void*(const char*)>;

class Library {
 public:
  // Over the simulated host, or what dlopen finds.
  explicit Library(const SourceOptions& options);
  // Over any functions: for tests.
  explicit Library(Lookup lookup);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  bool open() const { return open_; }
  // Why it is not open: what dlopen said. absent() tells "not installed" from "installed, but cannot be used".
  const std::string& trouble() const { return trouble_; }
  bool absent() const { return absent_; }

  // The scenario's name when it is the simulated library that was found in the driver's place, else empty.
  const std::string& simulation() const { return simulation_; }

  const Functions& functions() const { return functions_; }
  // "535.129.03", as the file's name tells: nothing of the driver needs to work for that. Empty when not told.
  std::string version_in_file_name() const;
  // The driver's words for a code: "Driver/library version mismatch".
  std::string text_of(nvml::Return code) const;
  // Whether ..RunningProcesses_v3 fills entries of 32 bytes instead of 24. Early 535 drivers (535.43 to .86) do, and
  // can be told by these two functions (XuehaiPan/nvitop, nvitop/api/libnvml.py; wookayin/gpustat#161).
  bool wide_process_entries() const;

 private:
  void open_file(const std::string& wanted);
  void find_functions(const Lookup& lookup);

  void* handle_ = nullptr;
  bool open_ = false;
  bool absent_ = false;
  std::string trouble_, simulation_;
  Functions functions_;
  nvml::ErrorString error_string_ = nullptr;
};

}  // namespace gpuwright::device::nvidia
