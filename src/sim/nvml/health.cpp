// Errors of the memory: ECC, rows that are remapped (Ampere and later), pages that are retired (before).
#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;

bool retires_pages(const GpuSpec& spec) {
  return spec.ecc.has_value() && !spec.row_remapping;
}

Return retired_pages(const char* function, nvml::Device device, int cause, unsigned* count,
                     unsigned long long* addresses, unsigned long long* times) {
  if (count == nullptr || (cause != nvml::kRetiredSingleBit && cause != nvml::kRetiredDoubleBit))
    return nvml::kInvalidArgument;
  return calls::for_gpu(function, device, [&](const GpuView& gpu) {
    if (!retires_pages(gpu.spec())) return nvml::kNotSupported;
    const GpuView::Errors errors = gpu.errors(FaultKind::remap);
    const auto pages = static_cast<unsigned>(cause == nvml::kRetiredSingleBit ? errors.corrected : errors.uncorrected);
    const unsigned room = *count;
    *count = pages;
    if (room < pages) return nvml::kInsufficientSize;
    for (unsigned i = 0; i < pages && addresses != nullptr; ++i) addresses[i] = 0x1000ULL * (i + 1);
    for (unsigned i = 0; i < pages && times != nullptr; ++i)
      times[i] = static_cast<unsigned long long>(gpu.host().unix_us(0));
    return nvml::kSuccess;
  });
}

}  // namespace

Return nvmlDeviceGetEccMode(nvml::Device device, nvml::EnableState* current, nvml::EnableState* pending) {
  if (current == nullptr || pending == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (!gpu.spec().ecc) return nvml::kNotSupported;
    *current = *pending = *gpu.spec().ecc ? 1 : 0;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetTotalEccErrors(nvml::Device device, nvml::MemoryErrorType type, nvml::EccCounter,
                                   unsigned long long* count) {
  return calls::tell(__func__, device, count, [&](const GpuView& gpu) -> std::optional<std::uint64_t> {
    if (!gpu.spec().ecc.value_or(false)) return std::nullopt;
    const GpuView::Errors errors = gpu.errors(FaultKind::ecc);
    return type == nvml::kErrorCorrected ? errors.corrected : errors.uncorrected;
  });
}

Return nvmlDeviceGetMemoryErrorCounter(nvml::Device device, nvml::MemoryErrorType type, nvml::EccCounter, int location,
                                       unsigned long long* count) {
  constexpr int kDeviceMemory = 2;
  return calls::tell(__func__, device, count, [&](const GpuView& gpu) -> std::optional<std::uint64_t> {
    if (!gpu.spec().ecc.value_or(false)) return std::nullopt;
    const GpuView::Errors errors = gpu.errors(FaultKind::ecc);
    if (location != kDeviceMemory) return 0;
    return type == nvml::kErrorCorrected ? errors.corrected : errors.uncorrected;
  });
}

Return nvmlDeviceGetRemappedRows(nvml::Device device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                 unsigned* failure) {
  if (corrected == nullptr || uncorrected == nullptr || pending == nullptr || failure == nullptr)
    return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (!gpu.spec().row_remapping) return nvml::kNotSupported;
    const GpuView::Errors errors = gpu.errors(FaultKind::remap);
    *corrected = static_cast<unsigned>(errors.corrected);
    *uncorrected = static_cast<unsigned>(errors.uncorrected);
    *pending = errors.pending ? 1 : 0;
    *failure = errors.failure ? 1 : 0;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetRetiredPages(nvml::Device device, nvml::RetirementCause cause, unsigned* count,
                                 unsigned long long* addresses) {
  return retired_pages(__func__, device, cause, count, addresses, nullptr);
}
Return nvmlDeviceGetRetiredPages_v2(nvml::Device device, nvml::RetirementCause cause, unsigned* count,
                                    unsigned long long* addresses, unsigned long long* times) {
  return retired_pages(__func__, device, cause, count, addresses, times);
}

Return nvmlDeviceGetRetiredPagesPendingStatus(nvml::Device device, nvml::EnableState* pending) {
  return calls::tell(__func__, device, pending, [](const GpuView& gpu) -> std::optional<int> {
    if (!retires_pages(gpu.spec())) return std::nullopt;
    return gpu.errors(FaultKind::remap).pending ? 1 : 0;
  });
}

}  // namespace gpuwright::sim
