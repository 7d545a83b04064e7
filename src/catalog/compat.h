// What goes with what: data/compat.toml as plain structs, with questions. Versions are texts that compare part by part
// (compare_versions in base/rules/facts.h); a capability is a GPU architecture as its vendor numbers it: "8.9",
// "gfx942". What is not in the tables is unknown: the answers are empty.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::catalog {

struct Sourced {
  std::vector<std::string> sources;  // spelled out
  bool verified = true;              // false: not checked against a primary source
};

struct CudaRelease : Sourced {
  std::string version;  // "12.8.1"
  std::string driver;   // that it was made with: "570.124.06"
};

// The oldest driver that runs every release of a major, where the program holds code for the GPU.
struct CudaMajor : Sourced {
  int major = 0;
  std::string driver;
};

enum class Support : std::uint8_t { legacy, new_feature, production, long_term };

struct DriverBranch : Sourced {
  int branch = 0;
  Support kind = Support::production;
  std::string end;  // "2028-06": the last month with fixes
  bool open = false, proprietary = false;
  std::string oldest;  // capability
  std::string cuda;    // the newest toolkit that it was released for
};

enum class Modules : std::uint8_t { proprietary, both, open };

struct ArchitectureWindow : Sourced {
  std::string capability;
  std::string name;  // "Ada Lovelace"
  std::string first_cuda;
  std::optional<std::string> last_cuda;  // nothing: still a target
  std::optional<int> first_driver, last_driver;
  Modules modules = Modules::both;
  bool own_code = false;  // of a Tegra: runs only code made for exactly it
};

struct HostCompiler : Sourced {
  std::string cuda;  // "12.8"
  int gcc = 0;       // the newest that nvcc takes
};

struct TorchBuild {
  std::string tag;   // "cu128"
  std::string cuda;  // "12.8"
  std::string cudnn;
  std::optional<std::string> nccl;
  std::vector<std::string> archs, arm_archs;  // capabilities with code; of the wheel for AArch64, empty where unknown
  std::optional<std::string> ptx;             // code that GPUs from this capability on may compile
  bool experimental = false;
  std::optional<bool> cxx11_abi;
  bool verified = true;
};

struct TorchRelease : Sourced {
  std::string version, newest;  // "2.9", "2.9.1"
  std::string oldest_python, newest_python;
  std::optional<std::string> vision, audio;
  std::string default_tag;
  std::optional<std::string> rocm;
  std::vector<TorchBuild> builds;
  const TorchBuild* build(std::string_view tag) const;
};

struct TensorflowRelease : Sourced {
  std::string version, newest;
  std::string oldest_python, newest_python;
  std::string cuda, cudnn;
  std::vector<std::string> archs;
  std::optional<std::string> ptx;
  bool brings_cuda = false;  // pip install tensorflow[and-cuda]
};

struct JaxExtra : Sourced {
  std::string extra;  // "cuda12"
  std::string cuda, cudnn;
  std::string oldest;  // capability
  std::string oldest_python, newest_python;
};

struct AmdTarget : Sourced {
  std::string gfx;
  std::optional<std::string> rocm;              // the first whose PyTorch wheels hold code for it
  std::optional<std::string> override_version;  // HSA_OVERRIDE_GFX_VERSION
};

struct ContainerNeeds : Sourced {
  std::string vendor;
  std::vector<std::string> host_packages, devices, options, environment;
  std::string cdi;
};

// How code for one capability serves a GPU of another: a cubin runs on GPUs of the same major and an equal or higher
// minor; those of Tegra chips, and AMD's, on exactly their own.
bool cubin_runs_on(std::string_view code, std::string_view gpu);

class Compat {
 public:
  // The built-in tables with ~/.config/gpuwright/compat.toml over them.
  static Result<Compat> load();
  static Result<Compat> from_toml(std::string_view text, std::string_view name);
  // Adds the rows of another file; one with the key of a known row takes its place. On an error nothing changes.
  Status overlay(std::string_view text, std::string_view name);

  std::vector<CudaRelease> cuda;  // oldest first, as all lists of versions
  std::vector<CudaMajor> cuda_majors;
  std::vector<DriverBranch> branches;
  std::vector<ArchitectureWindow> architectures;
  std::vector<HostCompiler> compilers;
  std::vector<TorchRelease> torch;
  std::vector<TensorflowRelease> tensorflow;
  std::vector<JaxExtra> jax;
  std::vector<AmdTarget> amd;
  std::vector<ContainerNeeds> containers;

  // "12.8" gives the newest update of 12.8, "12.8.0" that one.
  const CudaRelease* cuda_release(std::string_view version) const;
  // The oldest driver on which programs of that toolkit run at all.
  std::optional<std::string> driver_floor(std::string_view cuda) const;
  // The branch of a driver's version: "535.104.05" and "535" are 535.
  const DriverBranch* branch_of(std::string_view driver) const;
  // The newest CUDA that a driver runs without compatibility packages: what nvidia-smi shows as "CUDA Version".
  std::optional<std::string> newest_cuda_of(std::string_view driver) const;
  const ArchitectureWindow* architecture(std::string_view capability) const;
  // Whether a driver of the branch serves the GPU; nothing where the GPU is not in the table.
  std::optional<bool> serves(int branch, std::string_view capability) const;
  std::optional<int> newest_gcc(std::string_view cuda) const;
  // By "2.9", "2.9.1" or "2.9.1+cu128".
  const TorchRelease* torch_release(std::string_view version) const;
  const TensorflowRelease* tensorflow_release(std::string_view version) const;
  const AmdTarget* amd_target(std::string_view gfx) const;
  const ContainerNeeds* container(std::string_view vendor) const;
  // Whether the build has code for the GPU, or PTX that its driver can compile. Nothing: not known (AArch64).
  std::optional<bool> runs_on(const TorchBuild& build, std::string_view capability, bool aarch64) const;
};

// "cu128" -> "12.8", "cu92" -> "9.2"; nothing for other texts ("cpu", "rocm6.4").
std::optional<std::string> cuda_of_tag(std::string_view tag);
// The first `parts` numbers of a version: ("2.9.1+cu128", 2) -> "2.9".
std::string version_prefix(std::string_view version, int parts);

}  // namespace gpuwright::catalog
