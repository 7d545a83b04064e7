#include <fmt/format.h>

#include "doctor/checks/checks.h"

namespace gpuwright::doctor {
namespace {

// WSL and Jetson have their GPU elsewhere.
Outcome check_present(const Machine& machine) {
  if (machine.surroundings().wsl) return not_applicable("WSL: the GPU is reached through Windows");
  if (machine.surroundings().tegra) return not_applicable("Jetson: the GPU is part of the chip");
  if (!machine.pci_gpus()) return unknown("/sys/bus/pci/devices cannot be listed");
  if (machine.gpus().empty()) {
    Outcome outcome;
    outcome.wrong("pci.present").seen("/sys/bus/pci/devices", "no device of class 03 or 12 that computes");
    return outcome;
  }
  std::string text;
  for (const PciGpu& gpu : machine.gpus()) text += (text.empty() ? "" : ", ") + gpu.name;
  return fine(text);
}

}  // namespace

std::vector<Check> pci_checks() {
  return {{"pci.present", Layer::bus, check_present}};
}

}  // namespace gpuwright::doctor
