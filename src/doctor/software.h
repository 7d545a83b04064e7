// What is installed above the driver: Python environments, their PyTorch and its libraries, CUDA toolkits. Each is
// found out when the first check asks; nothing is run. For Machine, which keeps it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/loader.h"
#include "doctor/fatbin/fatbin.h"
#include "doctor/host.h"
#include "doctor/python/environment.h"
#include "doctor/python/torch_build.h"

namespace gpuwright::doctor {

class Software;

// A PyTorch that is installed. Its libraries are read when they are asked for.
class Torch {
 public:
  Torch(const Host& host, const std::vector<std::string>& library_folders, const PythonEnvironment& environment,
        TorchBuild build);

  const PythonEnvironment& environment() const { return *environment_; }
  const TorchBuild& build() const { return build_; }
  // What `import torch` loads; nothing where its libraries are not there.
  const std::optional<LoadPlan>& libraries() const;
  // Whether all of them could be read: a bundle holds their names alone.
  bool readable() const { return libraries() && libraries()->complete; }
  // The same without LD_LIBRARY_PATH; nothing where that is not set, too.
  const std::optional<LoadPlan>& libraries_by_themselves() const;
  // For which GPUs it holds code, by its libtorch_cuda.so (before 1.9 and in debug builds: libtorch_cuda_cu.so ...).
  const std::optional<Fatbins>& gpu_code() const;
  // Those libraries that hold the symbols which extensions need: libc10.so, libtorch_cpu.so, ...
  std::vector<const LoadedLibrary*> own_libraries() const;

 private:
  std::optional<LoadPlan> plan(const std::optional<std::string>& ld_library_path) const;

  const Host* host_;
  const std::vector<std::string>* library_folders_;
  const PythonEnvironment* environment_;
  TorchBuild build_;
  mutable std::optional<std::optional<LoadPlan>> libraries_, by_themselves_;
  mutable std::optional<std::optional<Fatbins>> gpu_code_;
};

// A CUDA toolkit: a compiler and libraries to build with.
struct Toolkit {
  std::string folder;    // as it is named: "/usr/local/cuda"
  std::string version;   // "12.6.3"; empty: not told
  std::string found_by;  // "CUDA_HOME", "nvcc on the PATH", "/usr/local"
};

class Software {
 public:
  // Both have to outlive it.
  Software(const Host& host, const std::vector<std::string>& library_folders);
  ~Software();
  Software(const Software&) = delete;
  Software& operator=(const Software&) = delete;

  const std::vector<PythonEnvironment>& environments() const;
  // The PyTorch of the active environment, where it has one; else all that are installed.
  const std::vector<Torch>& torches() const;
  // In the order in which build systems look: CUDA_HOME, the PATH, /usr/local/cuda, others.
  const std::vector<Toolkit>& toolkits() const;
  // With the LD_LIBRARY_PATH of the host.
  const Loader& loader() const;

 private:
  struct Found;
  const Host& host_;
  const std::vector<std::string>& library_folders_;
  std::unique_ptr<Found> found_;
};

// The CUDA version that a toolkit's files tell ("12.6.3"): version.json, version.txt, or include/cuda.h ("12.6").
std::optional<std::string> toolkit_version(const Host& host, const std::string& folder);

}  // namespace gpuwright::doctor
