// For which GPUs a library holds code: the architectures in its fatbins, by their headers alone. The code itself, a
// gigabyte in a framework's library, is stepped over.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/elf/elf.h"

namespace gpuwright::doctor {

// A compute capability as nvcc counts: 90 is 9.0, 121 is 12.1.
using Sm = int;

struct GpuCode {
  enum class Form : std::uint8_t { machine, ptx };  // PTX is compiled by the driver when it is loaded
  // What follows the number: plain code runs on later minors, "f" (family) code on those of the family, "a"
  // (architecture-specific) code on that one alone.
  enum class Reach : std::uint8_t { plain, family, exact };

  Form form = Form::machine;
  Sm sm = 0;
  Reach reach = Reach::plain;
  auto operator<=>(const GpuCode&) const = default;
};
std::string to_string(GpuCode code);                           // "sm_90a", "compute_120"
std::optional<GpuCode> gpu_code_named(std::string_view name);  // the same backwards

// Whether the driver can run code on a GPU of that capability. Machine code runs on its own major version from its own
// minor on; the minors of Tegra (5.3, 6.2, 7.2, 8.7, 10.1, 11.0) and the others do not run each other's.
// PTX runs on its own capability and all later ones. NVIDIA CUDA C++ Programming Guide 13.0, 5.1 and 5.2 ("Binary
// Compatibility", "PTX Compatibility"), and the section on family-specific features.
bool runs_on(GpuCode code, Sm gpu);

enum class Coverage : std::uint8_t { none, compiled_when_loaded, native };

struct GpuCodeCount {
  GpuCode code;
  std::int64_t count = 0;  // images of that kind
};

struct Fatbins {
  std::vector<GpuCodeCount> codes;  // sorted
  std::int64_t containers = 0;      // about one a source file
  bool complete = true;             // false: bounds were reached or a part was damaged; there may be more

  bool empty() const { return codes.empty(); }
  // What a library as a whole is built for. Code that only a few of its kernels have (sm_90a for one of them) says
  // nothing of the others: it counts when at least a quarter as many images as of the most frequent one are there.
  std::vector<GpuCode> usual() const;
  Coverage coverage(Sm gpu) const;
};

struct FatbinBounds {
  std::int64_t images = 16384;
  std::int64_t skipped_bytes = 1 << 20;  // of padding between containers, in all
};

// The sections .nv_fatbin and __nv_relfatbin. A library without them gives an empty answer.
Result<Fatbins> read_fatbins(const ElfFile& library, FatbinBounds bounds = {});
// Containers one after another in these bytes of a source, such as a .fatbin file.
Result<Fatbins> read_fatbins(const ByteSource& source, std::int64_t offset, std::int64_t bytes,
                             FatbinBounds bounds = {});

}  // namespace gpuwright::doctor
