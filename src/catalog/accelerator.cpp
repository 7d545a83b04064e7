#include "catalog/accelerator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gpuwright::catalog {
namespace {

// How much of the memory that is sold a program never sees. Fitted on the driver-reported totals that data/gpus.toml
// carries with their sources (48 rows; Linux, drivers of 2021 to 2026), always on the cautious side of the middle:
//   NVIDIA, GDDR: 300 MiB + 1.0 %. Measured losses: 12 GB 382..422 MiB, 16 GB 447..576, 24 GB 366..453, 32 GB 659,
//     96 GB 1,054. Pascal loses 1.0 % only (11 GB 92 MiB). Data-centre boards with GDDR5 or
//     GDDR6 run with ECC, whose bits take 1/16 of the memory first (A10 22,731 of 24,576 MiB; L40S 45,467 of 49,152;
//     T4 14,912 of 16,384). GDDR7 keeps its ECC bits apart.
//   NVIDIA, HBM (ECC bits apart): 100 MiB + 0.85 %. 16 GB 104..233, 40 GB 621..634, 80 GB 769..839, 141 GB 1,228,
//     180 GB 1,689.
//   AMD: 16 MiB whatever the size (MI50 to MI355X, RDNA2, RDNA3); RDNA4 0.5 % (16 GB 80 MiB, 32 GB 144 MiB).
//   Intel: 5.6 %, from one card (Arc A770).
//   Memory shared with the CPU: 5 % (GB10 4.9 %, Jetson AGX Orin 4.1 %). Apple lets Metal have 2/3 up to 36 GiB and
//     3/4 above (recommendedMaxWorkingSetSize: 10,922 MiB of 16 GiB, 147,456 MiB of 192 GiB).
//   Others: 6 %, as much as the kind that loses most without ECC, since no total was found.
double usable_mib_by_rule(const Accelerator& gpu) {
  const double nominal = gpu.nominal_memory.mib();
  const bool hbm = gpu.memory_type.starts_with("HBM");
  if (gpu.vendor == "Apple") return nominal * (nominal <= 36.0 * 1024.0 ? 2.0 / 3.0 : 0.75);
  if (gpu.unified_memory && !hbm) return nominal * 0.95;
  if (gpu.vendor == "AMD") return gpu.architecture == "RDNA4" ? nominal * 0.995 : nominal - 16.0;
  if (gpu.vendor == "NVIDIA") {
    if (hbm) return nominal * (1.0 - 0.0085) - 100.0;
    const bool inline_ecc = gpu.family == "datacenter" && gpu.memory_type != "GDDR7";
    const double fixed = gpu.architecture == "Pascal" ? 0.0 : 300.0;
    return nominal * (inline_ecc ? 15.0 / 16.0 : 1.0) - nominal * 0.01 - fixed;
  }
  if (gpu.vendor == "Intel" && !hbm) return nominal * 0.944;
  return nominal * 0.94;
}

}  // namespace

std::string to_string(PciId id) {
  std::string text = fmt::format("{:04x}:{:04x}", id.vendor, id.device);
  if (id.subsystem_vendor != 0 || id.subsystem_device != 0)
    text += fmt::format("/{:04x}:{:04x}", id.subsystem_vendor, id.subsystem_device);
  return text;
}

Bytes Accelerator::usable_by_rule() const {
  return Bytes::from_mib(std::max(0.0, usable_mib_by_rule(*this)));
}

Bytes Accelerator::usable() const {
  if (usable_memory) return *usable_memory;
  return sibling_usable_memory ? *sibling_usable_memory : usable_by_rule();
}

std::string Accelerator::usable_source() const {
  if (usable_memory) return usable_memory_source;
  if (sibling_usable_memory) return fmt::format("as reported for the {} with the same chip and memory", sibling);
  return "by a rule fitted on driver-reported totals";
}

bool Accelerator::memory_is_verified() const {
  const auto doubted = [&](std::string_view field) {
    return std::find(unverified.begin(), unverified.end(), field) != unverified.end();
  };
  return (usable_memory || sibling_usable_memory) && !doubted("memory_gib") && !doubted("usable_memory_mib");
}

bool is_board(const Accelerator& gpu) {
  if (gpu.family == "embedded" || gpu.family == "apu" || gpu.form_factor == "laptop") return false;
  return !gpu.unified_memory || gpu.family == "datacenter";
}

// NVIDIA Multi-Instance GPU User Guide, Supported GPUs: A30, A100, every GH100 and GB100 product, and the larger
// RTX PRO Blackwell boards; "GPUs starting with the NVIDIA Ampere generation (compute capability >= 8.0)".
std::optional<bool> supports_mig(const Accelerator& gpu) {
  if (!gpu.mig_profiles.empty()) return true;
  if (gpu.vendor != "NVIDIA") return false;
  const auto capability = gpu.compute_capability ? to_number(*gpu.compute_capability) : std::nullopt;
  if (!capability) return std::nullopt;
  const bool never = *capability < 8.0 || (*capability > 8.0 && *capability < 9.0) || gpu.family == "consumer";
  return never ? std::optional(false) : std::nullopt;
}

}  // namespace gpuwright::catalog
