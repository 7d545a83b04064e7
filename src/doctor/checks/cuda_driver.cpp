// cuda.driver, cuda.compat, cuda.stub: the driver's library that programs get, and whether it is new enough for them.
#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "doctor/checks/cuda.h"
#include "doctor/checks/software_advice.h"
#include "doctor/nvidia_driver.h"

namespace gpuwright::doctor {
namespace {

// GPUs for which PyTorch holds PTX alone: the driver has to know the CUDA that made it.
std::vector<std::string> compiled_when_loaded(const Machine& machine, const Torch& torch) {
  std::vector<std::string> gpus;
  if (!torch.gpu_code()) return gpus;
  for (const std::string& capability : nvidia_capabilities(machine))
    if (torch.gpu_code()->coverage(*sm_of(capability)) == Coverage::compiled_when_loaded) gpus.push_back(capability);
  return gpus;
}

void compare_driver(const Machine& machine, const Torch& torch, const std::string& driver, Outcome& outcome) {
  const catalog::Compat& compat = machine.compat();
  const std::string& cuda = *torch.build().cuda;
  const auto floor = compat.driver_floor(cuda);
  const auto tell = [&](std::string_view id, const std::string& needed) {
    Problem& problem = outcome.wrong(id);
    describe(machine, torch, problem);
    problem.version("driver_version", driver).version("driver_needed", needed);
    problem.version("driver_cuda", compat.newest_cuda_of(driver).value_or(""));
    problem.seen("/proc/driver/nvidia/version", driver);
    return &problem;
  };
  if (floor && compare_versions(driver, *floor) < 0) {
    tell("cuda.driver", *floor);
    return;
  }
  const auto* release = compat.cuda_release(catalog::version_prefix(cuda, 2));
  if (release == nullptr || compare_versions(driver, release->driver) >= 0) return;
  for (const std::string& capability : compiled_when_loaded(machine, torch))
    tell("cuda.driver.ptx", release->driver)->item("capability", capability);
}

bool can_be_forward_compatible(const PciGpu& gpu) {
  return gpu.accelerator == nullptr || gpu.accelerator->family != "consumer";
}

}  // namespace

Outcome check_cuda_driver(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  if (machine.surroundings().wsl) return not_applicable("the driver is that of Windows");
  const auto driver = driver_for_programs(machine);
  if (!driver) return unknown("the driver's version is not known");
  Outcome outcome = fine();
  bool any = false;
  for (const Torch& torch : machine.software().torches()) {
    if (!torch.build().cuda) continue;
    any = true;
    compare_driver(machine, torch, *driver, outcome);
  }
  if (outcome.state == State::wrong) return outcome;
  const auto newest = machine.compat().newest_cuda_of(*driver);
  return fine(fmt::format("driver {} runs CUDA{}{}", *driver, newest ? " up to " + *newest : "",
                          any ? ", PyTorch's included" : ""));
}

// NVIDIA CUDA Compatibility, "Forward Compatibility": the package's libcuda serves data-centre GPUs, some workstation
// cards and Jetson, on a driver that is older than it.
Outcome check_cuda_compat(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  const auto library = machine.software().loader().find("libcuda.so.1");
  if (!library) return unknown("the loader finds no libcuda.so.1");
  if (library->real_path.find("/compat") == std::string::npos) return fine("not in use");
  const std::string name = library->real_path.substr(library->real_path.rfind('/') + 1);
  const auto compat = version_in_library_name(name, "libcuda.so.");
  const auto installed = machine.nvidia().version();
  Outcome outcome = fine(fmt::format("{} stands in for the driver's libcuda", library->real_path));
  const auto tell = [&](std::string_view id) {
    Problem& problem = outcome.wrong(id);
    problem.fact("library_path", library->real_path).fact("folder", library->folder);
    problem.fact("found_by", to_string(library->way));
    problem.version("compat_version", compat.value_or("")).version("driver_version", installed.value_or(""));
    problem.seen(library->path, library->real_path);
    return &problem;
  };
  if (compat && installed && compare_versions(*compat, *installed) < 0) {
    tell("cuda.compat.older");
    return outcome;
  }
  for (const PciGpu* gpu : machine.gpus_of(device::Vendor::nvidia))
    if (!can_be_forward_compatible(*gpu)) tell("cuda.compat.unsupported")->fact("gpu", gpu->name);
  return outcome;
}

Outcome check_cuda_stub(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  const auto library = machine.software().loader().find("libcuda.so.1");
  if (!library) return unknown("the loader finds no libcuda.so.1");
  const bool stub =
      library->path.find("/stubs/") != std::string::npos || library->real_path.find("/stubs/") != std::string::npos;
  if (!stub) return fine(library->real_path);
  Outcome outcome = fine();
  outcome.wrong("cuda.stub")
      .fact("library_path", library->path)
      .fact("folder", library->folder)
      .fact("found_by", to_string(library->way))
      .seen(library->path, library->real_path);
  return outcome;
}

}  // namespace gpuwright::doctor
