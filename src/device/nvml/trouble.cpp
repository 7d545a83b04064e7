#include "device/nvml/trouble.h"

#include <fmt/format.h>

namespace gpuwright::device::nvidia {
namespace {

SourceReport failed(std::string text, std::string hint) {
  return {"nvml", SourceReport::Outcome::failed, std::move(text), std::move(hint)};
}

SourceReport mismatch(const InitFailure& failure) {
  const std::string module = failure.module_version.value_or("of another version");
  const std::string library = failure.library_version.value_or("of another version");
  return failed(fmt::format("the kernel module is {}, the library {}: versions differ", module, library),
                failure.inside_container
                    ? "the container brings its own libnvidia-ml.so: start it with the NVIDIA container runtime, which "
                      "mounts the host's, or restart it after the driver's update"
                    : "the driver was updated while in use: reboot, or stop what uses the GPUs and run "
                      "'rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia' as root");
}

SourceReport not_loaded(const InitFailure& failure) {
  if (!failure.has_devices)
    return {"nvml", SourceReport::Outcome::absent, "the library is installed, but no NVIDIA driver is loaded", ""};
  return failed("NVIDIA's kernel module is not loaded",
                failure.inside_container
                    ? "give the container its GPUs: docker run --gpus all, or a resource limit nvidia.com/gpu"
                    : "load it with 'modprobe nvidia'; where that fails, 'dmesg | grep -i nvidia' says why (Secure "
                      "Boot without a signed module, nouveau loaded, a kernel newer than the module)");
}

SourceReport lost_rights(const InitFailure& failure) {
  if (failure.inside_container)
    return failed("this container may no longer open /dev/nvidia*",
                  "'systemctl daemon-reload' on the host takes the devices from running containers: restart the "
                  "container; lasting cures are CDI or the cgroupfs driver (NVIDIA/nvidia-container-toolkit#48)");
  return failed("this user may not open /dev/nvidia*",
                "check the mode of /dev/nvidiactl and /dev/nvidia0 (0666 unless NVreg_DeviceFileMode says "
                "otherwise) and, where it is 0660, join its group");
}

}  // namespace

SourceReport report_of(const InitFailure& failure) {
  if (failure.code == nvml::kLibRmVersionMismatch) return mismatch(failure);
  if (failure.code == nvml::kDriverNotLoaded && !failure.nodes_forbidden) return not_loaded(failure);
  if (failure.nodes_forbidden || failure.code == nvml::kNoPermission) return lost_rights(failure);
  // Two versions that differ explain errors which do not say so.
  if (failure.module_version && failure.library_version && *failure.module_version != *failure.library_version)
    return mismatch(failure);
  return failed(fmt::format("nvmlInit: {} (code {})", failure.driver_words, failure.code),
                "'dmesg | grep -i -e nvrm -e xid' says what the driver met");
}

std::string advice_for(State state, int index, const std::string& driver_words) {
  switch (state) {
    case State::ok:
      return {};
    case State::asleep:
      return "runtime-suspended; --wake reads it, which wakes it";
    case State::lost:
      return "fell off the bus: reboot, or power-cycle the machine; when it comes back, check power, cooling and seat";
    case State::needs_reset:
      return fmt::format("stop what uses it, then run 'nvidia-smi --gpu-reset -i {}' as root", index);
    case State::unresponsive:
      return "the driver did not answer in time";
    case State::no_permission:
      return "the driver refuses this user: check the mode of its node /dev/nvidia*";
    case State::no_driver:
      return "no driver is bound to it";
    case State::failed:
      return fmt::format("the driver answers: {}", driver_words);
  }
  return {};
}

}  // namespace gpuwright::device::nvidia
