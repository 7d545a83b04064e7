// Errors of the memory, and what the driver wants done about them: dear to ask, so asked seldom.
#include "device/nvml/card.h"
#include "device/nvml/field_batch.h"

namespace gpuwright::device::nvidia {
namespace {

Reading<std::string> recovery_action(const Reading<std::uint64_t>& value) {
  if (!value) return value.why();
  switch (*value) {
    case nvml::kRecoverNothing:
      return std::string("none");
    case nvml::kRecoverGpuReset:
      return std::string("reset the GPU");
    case nvml::kRecoverNodeReboot:
      return std::string("reboot the node");
    case nvml::kRecoverDrainP2p:
      return std::string("drain peer-to-peer");
    case nvml::kRecoverDrainAndReset:
      return std::string("drain and reset");
    case nvml::kRecoverImexDomain:
      return std::string("recover the IMEX domain");
    case nvml::kRecoverBusReset:
      return std::string("reset the PCIe bus");
    case nvml::kRecoverSystemReboot:
      return std::string("reboot the system");
    default:
      return Why::implausible;
  }
}

Reading<std::int64_t> ecc_total(CardAsker& ask, const Reading<std::int64_t>& by_field, nvml::MemoryErrorType type,
                                nvml::EccCounter counter) {
  if (by_field || by_field.why() != Why::not_supported || !ask.fine()) return by_field;
  unsigned long long value = 0;
  const nvml::Return code =
      ask.plain()(ask.functions().nvmlDeviceGetTotalEccErrors, ask.handle(), type, counter, &value);
  return count(code, value);
}

void tell_ecc(Gpu& gpu, CardAsker& ask, const FieldBatch& fields) {
  nvml::EnableState now = 0, pending = 0;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetEccMode, &now, &pending);
  gpu.ecc_enabled = yes_or_no(code, now);
  gpu.ecc_corrected_volatile = fields.count(nvml::field::kEccCorrectedVolatile);
  gpu.ecc_uncorrected_volatile = fields.count(nvml::field::kEccUncorrectedVolatile);
  gpu.ecc_corrected_aggregate = fields.count(nvml::field::kEccCorrectedAggregate);
  gpu.ecc_uncorrected_aggregate = fields.count(nvml::field::kEccUncorrectedAggregate);
  // Without ECC there is nothing to count, by whichever function.
  if (!gpu.ecc_enabled.value_or(true) || code == nvml::kNotSupported) return;
  gpu.ecc_corrected_volatile = ecc_total(ask, gpu.ecc_corrected_volatile, nvml::kErrorCorrected, nvml::kEccVolatile);
  gpu.ecc_uncorrected_volatile =
      ecc_total(ask, gpu.ecc_uncorrected_volatile, nvml::kErrorUncorrected, nvml::kEccVolatile);
  gpu.ecc_corrected_aggregate = ecc_total(ask, gpu.ecc_corrected_aggregate, nvml::kErrorCorrected, nvml::kEccAggregate);
  gpu.ecc_uncorrected_aggregate =
      ecc_total(ask, gpu.ecc_uncorrected_aggregate, nvml::kErrorUncorrected, nvml::kEccAggregate);
}

void tell_rows(Gpu& gpu, CardAsker& ask, const FieldBatch& fields) {
  gpu.remapped_rows_corrected = fields.count(nvml::field::kRemappedCorrected);
  gpu.remapped_rows_uncorrected = fields.count(nvml::field::kRemappedUncorrected);
  gpu.remapping_pending = fields.flag(nvml::field::kRemappedPending);
  gpu.remapping_failed = fields.flag(nvml::field::kRemappedFailure);
  const auto refused = [](const auto& reading) { return !reading && reading.why() == Why::not_supported; };
  if (!refused(gpu.remapped_rows_corrected) || !refused(gpu.remapped_rows_uncorrected) ||
      !refused(gpu.remapping_pending))
    return;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetRemappedRows, &corrected, &uncorrected, &pending, &failed);
  gpu.remapped_rows_corrected = count32(code, corrected);
  gpu.remapped_rows_uncorrected = count32(code, uncorrected);
  gpu.remapping_pending = yes_or_no(code, pending);
  gpu.remapping_failed = yes_or_no(code, failed);
}

Reading<std::int64_t> retired(CardAsker& ask, const Reading<std::int64_t>& by_field, nvml::RetirementCause cause) {
  if (by_field || by_field.why() != Why::not_supported || !ask.fine()) return by_field;
  unsigned pages = 0;
  unsigned long long* no_addresses = nullptr;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetRetiredPages, cause, &pages, no_addresses);
  return count32(code == nvml::kInsufficientSize ? nvml::kSuccess : code, pages);
}

void tell_pages(Gpu& gpu, CardAsker& ask, const FieldBatch& fields) {
  gpu.retired_pages_corrected = retired(ask, fields.count(nvml::field::kRetiredSingleBit), nvml::kRetiredSingleBit);
  gpu.retired_pages_uncorrected = retired(ask, fields.count(nvml::field::kRetiredDoubleBit), nvml::kRetiredDoubleBit);
  gpu.retirement_pending = fields.flag(nvml::field::kRetiredPending);
  if (gpu.retirement_pending || gpu.retirement_pending.why() != Why::not_supported) return;
  nvml::EnableState pending = 0;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetRetiredPagesPendingStatus, &pending);
  gpu.retirement_pending = yes_or_no(code, pending);
}

}  // namespace

void want_health(FieldBatch& fields) {
  fields.want({nvml::field::kEccCorrectedVolatile, nvml::field::kEccUncorrectedVolatile,
               nvml::field::kEccCorrectedAggregate, nvml::field::kEccUncorrectedAggregate,
               nvml::field::kRetiredSingleBit, nvml::field::kRetiredDoubleBit, nvml::field::kRetiredPending,
               nvml::field::kRemappedCorrected, nvml::field::kRemappedUncorrected, nvml::field::kRemappedPending,
               nvml::field::kRemappedFailure, nvml::field::kPcieReplays, nvml::field::kRecoveryAction});
}

void tell_health(Gpu& gpu, CardAsker& ask, const FieldBatch& fields) {
  tell_ecc(gpu, ask, fields);
  if (ask.fine()) tell_rows(gpu, ask, fields);
  if (ask.fine()) tell_pages(gpu, ask, fields);
  gpu.pcie_replays = fields.count(nvml::field::kPcieReplays);
  if (!gpu.pcie_replays && gpu.pcie_replays.why() == Why::not_supported && ask.fine()) {
    unsigned value = 0;
    const nvml::Return code = ask(ask.functions().nvmlDeviceGetPcieReplayCounter, &value);
    gpu.pcie_replays = count32(code, value);
  }
  gpu.recovery_action = recovery_action(fields.number(nvml::field::kRecoveryAction));
}

}  // namespace gpuwright::device::nvidia
