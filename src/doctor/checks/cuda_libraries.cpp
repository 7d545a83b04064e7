// cuda.ldpath and cuda.soname: which libraries `import torch` gets, by what the loader would do. A library that stands
// in the place of PyTorch's own is a fault only where that shows: it lacks a symbol that others need, or is one part of
// a set (cuDNN) whose other parts come from elsewhere. Else it is worth a warning.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/checks/cuda.h"
#include "doctor/checks/software_advice.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostSymbols = 20000;  // looked up for one pair of libraries

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// "libcudnn" of "libcudnn.so.9", "libcudnn_ops.so.9.1.0"
std::string stem_of(std::string_view name) {
  return std::string(name.substr(0, name.find(".so")));
}

bool is_of_cuda(std::string_view name) {
  for (const char* begin : {"libcu", "libnv", "libnccl"})
    if (name.starts_with(begin)) return name != "libcuda.so.1" && !name.starts_with("libnvidia");
  return false;
}

bool is_of_the_driver(std::string_view name) {
  return name == "libcuda.so.1" || name.starts_with("libnvidia-") || name == "libcuda.so";
}

// Every system that runs at all has these; where they are missing, they were not captured.
bool is_of_the_system(std::string_view name) {
  constexpr std::string_view kNames[] = {"libc",  "libm",    "libdl",    "libpthread",
                                         "librt", "libutil", "libgcc_s", "libresolv"};
  const std::string stem = stem_of(name);
  return name.starts_with("ld-linux") || std::find(std::begin(kNames), std::end(kNames), stem) != std::end(kNames);
}

struct BrokenSymbol {
  std::string symbol, user;
};

// A symbol that a library of the plan wants, that the own copy has, and the one which is loaded instead has not.
std::optional<BrokenSymbol> symbol_lost(const LoadPlan& plan, const LoadedLibrary& taken, const LoadedLibrary& own) {
  for (const LoadedLibrary& user : plan.libraries) {
    const auto& needed = user.elf.needed;
    if (std::find(needed.begin(), needed.end(), taken.name) == needed.end()) continue;
    const auto symbols = user.elf.undefined_symbols();
    if (!symbols) continue;
    for (std::size_t i = 0; i < symbols->size() && i < kMostSymbols; ++i) {
      const std::string& symbol = (*symbols)[i];
      if (own.elf.defines(symbol).value_or(false) && !taken.elf.defines(symbol).value_or(true))
        return BrokenSymbol{symbol, user.name};
    }
  }
  return std::nullopt;
}

void compare_plans(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const LoadPlan& with = *torch.libraries();
  const LoadPlan& without = *torch.libraries_by_themselves();
  for (const LoadedLibrary& taken : with.libraries) {
    if (taken.way != FoundBy::ld_library_path || !is_of_cuda(taken.name)) continue;
    const LoadedLibrary* own = without.find(taken.name);
    if (own == nullptr || own->real_path == taken.real_path) continue;
    const auto lost = symbol_lost(with, taken, *own);
    Problem& problem = outcome.wrong(lost ? "cuda.ldpath" : "cuda.ldpath.shadow");
    describe(machine, torch, problem);
    problem.item("library", taken.name).item("library_path", taken.real_path).item("own_path", own->real_path);
    problem.fact("folder", taken.folder)
        .fact("ld_library_path", machine.host().variable("LD_LIBRARY_PATH").value_or(""));
    if (lost) problem.fact("symbol", lost->symbol).fact("wanted_by", lost->user);
    problem.seen(taken.path, fmt::format("instead of {}", own->real_path));
  }
}

// cuDNN's libcudnn.so.9 opens its parts (libcudnn_ops.so.9 ...) by name when they are first used: LD_LIBRARY_PATH
// decides.
void compare_cudnn_parts(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const Host& host = machine.host();
  for (const LoadedLibrary& library : torch.libraries()->libraries) {
    if (stem_of(library.name) != "libcudnn" || !library.elf.rpath.empty()) continue;
    const std::string home = folder_of(library.real_path);
    for (const std::string& name : host.names(home)) {
      if (!name.starts_with("libcudnn_") || name.find(".so.") == std::string::npos) continue;
      for (const std::string& folder : machine.software().loader().ld_library_path()) {
        const auto real = host.resolve(folder + "/" + name);
        if (!real || folder_of(*real) == home) continue;
        Problem& problem = outcome.wrong("cuda.ldpath.cudnn");
        describe(machine, torch, problem);
        problem.item("library", name).fact("library_path", *real).fact("own_path", library.real_path);
        problem.fact("folder", folder).fact("ld_library_path", host.variable("LD_LIBRARY_PATH").value_or(""));
        problem.seen(*real, fmt::format("beside {}", library.real_path));
        break;
      }
    }
  }
}

// Files of the same library with another number, in the folders that were searched.
std::vector<std::string> others_of(const Machine& machine, const Torch& torch, const std::string& name) {
  const Host& host = machine.host();
  std::vector<std::string> folders = machine.software().loader().ld_library_path(), found;
  folders.insert(folders.end(), machine.library_folders().begin(), machine.library_folders().end());
  const std::string nvidia = folder_of(torch.build().folder) + "/nvidia";
  for (const std::string& package : host.names(nvidia, 64)) folders.push_back(nvidia + "/" + package + "/lib");
  folders.push_back(torch.build().folder + "/lib");
  const std::string begin = stem_of(name) + ".so.";
  for (const std::string& folder : folders)
    for (const std::string& file : host.names(folder, 16384))
      if (file.starts_with(begin) && file != name && found.size() < 4) found.push_back(folder + "/" + file);
  return found;
}

// "nvidia-cudnn-cu12" for libcudnn.so.9 of a build for CUDA 12.
std::string wheel_of(std::string_view name, std::string_view cuda) {
  static const std::map<std::string, std::string, std::less<>> kWheels = {
      {"libcudnn", "nvidia-cudnn"},           {"libcublas", "nvidia-cublas"},    {"libcublasLt", "nvidia-cublas"},
      {"libcudart", "nvidia-cuda-runtime"},   {"libnccl", "nvidia-nccl"},        {"libcusparse", "nvidia-cusparse"},
      {"libcusolver", "nvidia-cusolver"},     {"libcufft", "nvidia-cufft"},      {"libcurand", "nvidia-curand"},
      {"libnvrtc", "nvidia-cuda-nvrtc"},      {"libcupti", "nvidia-cuda-cupti"}, {"libnvJitLink", "nvidia-nvjitlink"},
      {"libcusparseLt", "nvidia-cusparselt"}, {"libcufile", "nvidia-cufile"},    {"libnvToolsExt", "nvidia-nvtx"},
      {"libnvshmem_host", "nvidia-nvshmem"}};
  const auto wheel = kWheels.find(stem_of(name));
  const std::string major(cuda.substr(0, cuda.find('.')));
  // From CUDA 13 on the toolkit's own wheels have no suffix; those with a calendar of their own keep it.
  const bool own_calendar =
      wheel != kWheels.end() && (wheel->second == "nvidia-cudnn" || wheel->second == "nvidia-nccl" ||
                                 wheel->second == "nvidia-nvshmem" || wheel->second == "nvidia-cusparselt");
  if (wheel == kWheels.end()) return {};
  return major >= "13" && !own_calendar ? wheel->second : fmt::format("{}-cu{}", wheel->second, major);
}

void tell_missing(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const LoadPlan& plan = *torch.libraries();
  for (const MissingLibrary& missing : plan.missing) {
    if (is_of_the_driver(missing.name) || is_of_the_system(missing.name)) continue;
    const std::string user =
        missing.wanted_by < 0 ? torch.build().folder : plan.libraries[static_cast<std::size_t>(missing.wanted_by)].path;
    Problem& problem = outcome.wrong("cuda.soname");
    describe(machine, torch, problem);
    problem.item("library", missing.name).fact("wanted_by", user);
    const std::string wheel = wheel_of(missing.name, torch.build().cuda.value_or(""));
    if (!wheel.empty()) problem.fact("wheel", wheel);
    for (const std::string& other : others_of(machine, torch, missing.name)) problem.item("found_instead", other);
    problem.seen(user, fmt::format("NEEDED {}", missing.name));
  }
}

}  // namespace

Outcome check_cuda_ldpath(const Machine& machine) {
  if (!machine.host().environment_known()) return unknown("the environment is not known");
  if (machine.host().variable("LD_LIBRARY_PATH").value_or("").empty()) return fine("LD_LIBRARY_PATH is not set");
  Outcome outcome = fine("LD_LIBRARY_PATH changes nothing for PyTorch");
  bool any = false, unreadable = false;
  for (const Torch& torch : machine.software().torches()) {
    if (!torch.build().cuda) continue;
    if (!torch.readable() || !torch.libraries_by_themselves()) {
      unreadable = true;
      continue;
    }
    any = true;
    compare_cudnn_parts(machine, torch, outcome);
    compare_plans(machine, torch, outcome);
  }
  if (any) return outcome;
  return unreadable ? unknown("PyTorch's libraries cannot be read") : not_applicable("no PyTorch for CUDA");
}

Outcome check_cuda_soname(const Machine& machine) {
  Outcome outcome = fine();
  std::size_t loaded = 0;
  std::string cudnn;
  bool unreadable = false;
  for (const Torch& torch : machine.software().torches()) {
    if (!torch.build().for_gpus()) continue;
    if (!torch.readable()) {
      unreadable = true;
      continue;
    }
    loaded += torch.libraries()->libraries.size();
    for (const LoadedLibrary& library : torch.libraries()->libraries)
      if (stem_of(library.name) == "libcudnn") cudnn = ", cuDNN from " + library.real_path;
    tell_missing(machine, torch, outcome);
  }
  if (loaded == 0)
    return unreadable ? unknown("PyTorch's libraries cannot be read") : not_applicable("no PyTorch for GPUs");
  if (outcome.state == State::ok) outcome.text = fmt::format("{} libraries of PyTorch are there{}", loaded, cudnn);
  return outcome;
}

}  // namespace gpuwright::doctor
