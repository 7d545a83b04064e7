// The readings of a Gpu and of a Process by name, once: records, JSON, CSV and --fields all walk these lists, so that
// none can forget a reading. Names carry the unit in which JSON and CSV print the value.
#pragma once

#include "device/snapshot.h"

namespace gpuwright::device {

// Calls visit("memory_total_bytes", gpu.memory_total) for each reading, of a Gpu or a const Gpu. The order is the order
// of columns, and of the bytes of a recorded frame: new readings go to the end.
template <class AnyGpu, class Visit>
void for_each_reading_of_gpu(AnyGpu& gpu, Visit&& visit) {
  visit("name", gpu.name);
  visit("uuid", gpu.uuid);
  visit("serial", gpu.serial);
  visit("pci_address", gpu.pci_address);
  visit("pci_id", gpu.pci_id);
  visit("vbios", gpu.vbios);
  visit("architecture", gpu.architecture);
  visit("compute_capability", gpu.compute_capability);
  visit("device_minor", gpu.device_minor);
  visit("numa_node", gpu.numa_node);
  visit("cuda_index", gpu.cuda_index);
  visit("memory_total_bytes", gpu.memory_total);
  visit("memory_used_bytes", gpu.memory_used);
  visit("memory_reserved_bytes", gpu.memory_reserved);
  visit("memory_free_bytes", gpu.memory_free);
  visit("host_used_bytes", gpu.host_used);
  visit("bar1_total_bytes", gpu.bar1_total);
  visit("bar1_used_bytes", gpu.bar1_used);
  visit("gtt_total_bytes", gpu.gtt_total);
  visit("gtt_used_bytes", gpu.gtt_used);
  visit("utilization_ratio", gpu.utilization);
  visit("memory_utilization_ratio", gpu.memory_utilization);
  visit("encoder_utilization_ratio", gpu.encoder_utilization);
  visit("decoder_utilization_ratio", gpu.decoder_utilization);
  visit("jpeg_utilization_ratio", gpu.jpeg_utilization);
  visit("ofa_utilization_ratio", gpu.ofa_utilization);
  visit("sm_activity_ratio", gpu.sm_activity);
  visit("sm_occupancy_ratio", gpu.sm_occupancy);
  visit("tensor_activity_ratio", gpu.tensor_activity);
  visit("sm_clock_hertz", gpu.sm_clock);
  visit("graphics_clock_hertz", gpu.graphics_clock);
  visit("memory_clock_hertz", gpu.memory_clock);
  visit("video_clock_hertz", gpu.video_clock);
  visit("sm_clock_max_hertz", gpu.sm_clock_max);
  visit("graphics_clock_max_hertz", gpu.graphics_clock_max);
  visit("memory_clock_max_hertz", gpu.memory_clock_max);
  visit("performance_state", gpu.performance_state);
  visit("throttle_reasons", gpu.throttle_reasons);
  visit("power_watts", gpu.power);
  visit("power_instant_watts", gpu.power_instant);
  visit("power_limit_watts", gpu.power_limit);
  visit("power_limit_default_watts", gpu.power_limit_default);
  visit("power_limit_min_watts", gpu.power_limit_min);
  visit("power_limit_max_watts", gpu.power_limit_max);
  visit("energy_joules", gpu.energy);
  visit("temperature_celsius", gpu.temperature);
  visit("memory_temperature_celsius", gpu.memory_temperature);
  visit("temperature_slowdown_celsius", gpu.temperature_slowdown);
  visit("temperature_shutdown_celsius", gpu.temperature_shutdown);
  visit("fan_ratio", gpu.fan);
  visit("fan_rpm", gpu.fan_rpm);
  visit("pcie_sent_bytes_per_second", gpu.pcie_sent);
  visit("pcie_received_bytes_per_second", gpu.pcie_received);
  visit("nvlink_sent_bytes_per_second", gpu.nvlink_sent);
  visit("nvlink_received_bytes_per_second", gpu.nvlink_received);
  visit("pcie_generation", gpu.pcie_generation);
  visit("pcie_generation_max", gpu.pcie_generation_max);
  visit("pcie_width", gpu.pcie_width);
  visit("pcie_width_max", gpu.pcie_width_max);
  visit("pcie_replays", gpu.pcie_replays);
  visit("ecc_enabled", gpu.ecc_enabled);
  visit("ecc_corrected_volatile", gpu.ecc_corrected_volatile);
  visit("ecc_uncorrected_volatile", gpu.ecc_uncorrected_volatile);
  visit("ecc_corrected_aggregate", gpu.ecc_corrected_aggregate);
  visit("ecc_uncorrected_aggregate", gpu.ecc_uncorrected_aggregate);
  visit("remapped_rows_corrected", gpu.remapped_rows_corrected);
  visit("remapped_rows_uncorrected", gpu.remapped_rows_uncorrected);
  visit("retired_pages_corrected", gpu.retired_pages_corrected);
  visit("retired_pages_uncorrected", gpu.retired_pages_uncorrected);
  visit("remapping_pending", gpu.remapping_pending);
  visit("remapping_failed", gpu.remapping_failed);
  visit("retirement_pending", gpu.retirement_pending);
  visit("mig_mode", gpu.mig_mode);
  visit("persistence_mode", gpu.persistence_mode);
  visit("display_active", gpu.display_active);
  visit("compute_mode", gpu.compute_mode);
  visit("recovery_action", gpu.recovery_action);
  visit("last_xid", gpu.last_xid);
  visit("vram_total_bytes", gpu.vram_total);
  visit("vram_used_bytes", gpu.vram_used);
}

template <class AnyProcess, class Visit>
void for_each_reading_of_process(AnyProcess& process, Visit&& visit) {
  visit("gpu_instance", process.gpu_instance);
  visit("compute_instance", process.compute_instance);
  visit("pid_here", process.pid_here);
  visit("memory_bytes", process.memory);
  visit("sm_utilization_ratio", process.sm_utilization);
  visit("memory_utilization_ratio", process.memory_utilization);
  visit("encoder_utilization_ratio", process.encoder_utilization);
  visit("decoder_utilization_ratio", process.decoder_utilization);
  visit("user", process.user);
  visit("command", process.command);
  visit("executable", process.executable);
  visit("started", process.started);
  visit("cpu_ratio", process.cpu);
  visit("host_memory_bytes", process.host_memory);
  visit("container", process.container);
  visit("container_runtime", process.container_runtime);
  visit("pod", process.pod);
  visit("pod_uid", process.pod_uid);
  visit("kubernetes_namespace", process.kubernetes_namespace);
  visit("slurm_job", process.slurm_job);
  visit("systemd_unit", process.systemd_unit);
}

template <class AnyInstance, class Visit>
void for_each_reading_of_instance(AnyInstance& instance, Visit&& visit) {
  visit("uuid", instance.uuid);
  visit("profile", instance.profile);
  visit("memory_total_bytes", instance.memory_total);
  visit("memory_used_bytes", instance.memory_used);
  visit("memory_free_bytes", instance.memory_free);
  visit("multiprocessors", instance.multiprocessors);
  visit("graphics_activity_ratio", instance.graphics_activity);
  visit("sm_activity_ratio", instance.sm_activity);
  visit("sm_occupancy_ratio", instance.sm_occupancy);
  visit("tensor_activity_ratio", instance.tensor_activity);
}

}  // namespace gpuwright::device
