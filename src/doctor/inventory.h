// What is installed on a machine, as far as questions about GPUs turn on it: what people paste into a bug report, and
// what `python -m torch.utils.collect_env` lists, read from files instead of by running programs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/machine.h"
#include "doctor/python/environment.h"

namespace gpuwright::doctor {

struct InstalledPython {
  std::string prefix, version;  // "3.11.7", or "3.11" where no file tells more
  PythonEnvironment::Kind kind = PythonEnvironment::Kind::other;
  bool active = false;
  std::optional<std::string> torch, torch_cuda, torch_hip;
  std::vector<Package> packages;  // of frameworks, CUDA's libraries, and what works with them; by name
};

struct Inventory {
  std::optional<std::string> cpu;  // its model
  std::optional<int> processors;
  std::optional<std::string> libc;   // "glibc 2.36", by the newest symbol version that it offers
  std::optional<std::string> gcc;    // "12": the compiler that "gcc" means
  std::optional<std::string> clang;  // "14"
  std::optional<std::string> cmake;  // "3.25"
  std::optional<std::string> rocm;   // "6.4.1"
  std::vector<std::pair<std::string, std::string>> cuda_toolkits;  // folder, version (empty: not told)
  std::vector<std::string> cudnn;                                  // the system's libraries, links resolved
  std::vector<std::pair<std::string, std::string>> variables;      // those that change what a framework does
  std::vector<InstalledPython> pythons;                            // the active one first
};
Inventory read_inventory(const Machine& machine);

// The GCC that "gcc" means, by its major version, and the path that tells; nothing where there is none.
struct HostCompiler {
  int major = 0;
  std::string source;
};
std::optional<HostCompiler> host_compiler(const Host& host);

}  // namespace gpuwright::doctor
