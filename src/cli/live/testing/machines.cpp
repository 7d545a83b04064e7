#include "cli/live/testing/machines.h"

#include <fmt/format.h>

namespace gpuwright::cli::testing {

using device::Why;

constexpr std::int64_t kNow = 1796072400ll * 1'000'000'000;  // 2026-11-30 21:00:00 UTC

device::Gpu busy_gpu(int index) {
  device::Gpu gpu;
  gpu.index = gpu.vendor_index = index;
  gpu.vendor = device::Vendor::nvidia;
  gpu.source = "nvml";
  gpu.catalog_id = "h100-sxm5-80gb";
  gpu.name = std::string("NVIDIA H100 80GB HBM3");
  gpu.uuid = fmt::format("GPU-5f1c0000-0000-4000-8000-00000000000{:x}", index);
  gpu.pci_address = fmt::format("0000:{:02x}:00.0", 0x1b + index * 4);
  gpu.memory_total = Bytes::from_gib(80);
  gpu.memory_used = Bytes::from_gib(70.5);
  gpu.memory_reserved = Bytes::from_gib(0.5);
  gpu.memory_free = Bytes::from_gib(9);
  gpu.utilization = Ratio{0.97};
  gpu.memory_utilization = Ratio{0.41};
  gpu.encoder_utilization = Ratio{0};
  gpu.decoder_utilization = Ratio{0};
  gpu.sm_clock = Hertz{1755e6};
  gpu.graphics_clock = Hertz{1755e6};
  gpu.memory_clock = Hertz{2619e6};
  gpu.power = Watts{612.4};
  gpu.power_limit = Watts{700};
  gpu.temperature = Celsius{64};
  gpu.fan = Why::not_supported;
  gpu.performance_state = 0;
  gpu.throttle_reasons = device::ThrottleReasons{0};
  gpu.recovery_action = std::string("none");
  return gpu;
}

device::Process training_process(int gpu, std::int64_t pid) {
  device::Process process;
  process.gpu = gpu;
  process.pid = pid;
  process.pid_here = pid;
  process.kind = device::process_kind::kCompute;
  process.memory = Bytes::from_gib(70);
  process.sm_utilization = Ratio{0.95};
  process.memory_utilization = Ratio{0.4};
  process.encoder_utilization = Ratio{0};
  process.decoder_utilization = Ratio{0};
  process.user = std::string("alice");
  process.command = std::string("python train.py --config a.yaml");
  process.executable = std::string("/usr/bin/python3.11");
  process.started = device::UnixTime{kNow - 8099ll * 1'000'000'000};  // 2:14:59
  process.cpu = Why::needs_two_samples;
  process.pod = process.kubernetes_namespace = process.slurm_job = process.container = std::string();
  return process;
}

device::Snapshot two_gpus() {
  device::Snapshot snapshot;
  snapshot.hostname = "node7";
  snapshot.time = {kNow};
  device::Driver driver;
  driver.source = "nvml";
  driver.version = std::string("580.95.05");
  driver.library_version = std::string("580.95.05");
  driver.cuda_version = std::string("13.0");
  snapshot.drivers.push_back(driver);
  snapshot.gpus = {busy_gpu(0), busy_gpu(1)};
  snapshot.gpus[1].utilization = Ratio{0};
  snapshot.gpus[1].memory_used = Bytes::from_gib(20);
  snapshot.gpus[1].memory_free = Bytes::from_gib(59.5);
  device::Process training = training_process(0, 4711);
  training.pod = std::string("train-0");
  training.kubernetes_namespace = std::string("ml");
  device::Process idle = training_process(1, 4812);
  idle.user = std::string("bob");
  idle.memory = Bytes::from_gib(12);
  idle.sm_utilization = Ratio{0};
  idle.command = std::string("/opt/conda/bin/python -m ipykernel_launcher");
  idle.slurm_job = std::string("991.0");
  snapshot.processes = {training, idle};
  return snapshot;
}

device::Snapshot many_gpus(int count) {
  device::Snapshot snapshot = two_gpus();
  snapshot.gpus.clear();
  snapshot.processes.clear();
  for (int i = 0; i < count; ++i) {
    snapshot.gpus.push_back(busy_gpu(i));
    snapshot.processes.push_back(training_process(i, 5000 + i));
  }
  return snapshot;
}

}  // namespace gpuwright::cli::testing
