// Any bytes as the log of a run, in pieces of any size: what is found is bounded and never negative, and any text as
// the user's calibration.toml.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fit/learn/calibration.h"
#include "fit/learn/compare.h"
#include "fit/learn/memory_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fit = gpuwright::fit;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto log = fit::read_memory_log(*gpuwright::bytes_in_memory(text, "fuzz.log"));
  if (!log) std::abort();
  if (log->run.measurements.size() > 1024 || log->run.gpus.size() > 128 || log->run.settings.size() > 64) std::abort();
  for (const fit::Measurement& measurement : log->run.measurements)
    if (measurement.bytes.count < 0 || measurement.count < 0 || measurement.text.size() > 160) std::abort();

  fit::Estimate estimate;
  fit::GpuEstimate gpu;
  gpu.gpu = "fuzz";
  gpu.instants = {
      {"serve",
       {fit::Component::exact(fit::ComponentKind::runtime, fit::Meter::device, gpuwright::Bytes{1 << 28}, "", "")},
       ""}};
  estimate.per_gpu = {gpu};
  const auto comparison = fit::compare(log->run, estimate, fit::Engine::vllm);
  const auto learnt = fit::corrections_from(comparison, fit::Engine::vllm, text, "2026-11-30", text);
  // What is written is read again.
  if (!fit::corrections_from_toml(fit::to_toml(learnt), "written.toml") &&
      text.find_first_not_of(' ') != std::string::npos)
    std::abort();
  static_cast<void>(fit::corrections_from_toml(text, "fuzz.toml"));
  return 0;
}
