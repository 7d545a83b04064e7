// nvmlDeviceGetFieldValues: many values in one call, each with a code of its own.
#include <cmath>

#include "sim/nvml/call.h"
#include "sim/nvml/links.h"

namespace gpuwright::sim {
namespace {

using nvml::FieldValue;
using nvml::Return;
namespace field = nvml::field;
namespace reason = nvml::clock_reason;

void set(FieldValue& into, unsigned value) {
  into.value_type = nvml::kUnsignedInt;
  into.value.as_unsigned = value;
}
void set(FieldValue& into, std::uint64_t value) {
  into.value_type = nvml::kUnsignedLongLong;
  into.value.as_unsigned_long_long = value;
}
void set(FieldValue& into, int value) {
  into.value_type = nvml::kSignedInt;
  into.value.as_int = value;
}

template <class Value>
Return give(FieldValue& into, Value value) {
  set(into, value);
  return nvml::kSuccess;
}

Return give_watts(FieldValue& into, double watts) {
  return watts > 0 ? give(into, static_cast<unsigned>(std::lround(watts * 1000))) : nvml::kNotSupported;
}

Return ecc_field(const GpuView& gpu, FieldValue& into) {
  const GpuSpec& spec = gpu.spec();
  if (!spec.ecc) return nvml::kNotSupported;
  const GpuView::Errors errors = gpu.errors(FaultKind::ecc);
  switch (into.field_id) {
    case field::kEccCurrent:
    case field::kEccPending:
      return give(into, *spec.ecc ? 1U : 0U);
    default:
      break;
  }
  if (!*spec.ecc) return nvml::kNotSupported;
  const bool corrected =
      into.field_id == field::kEccCorrectedVolatile || into.field_id == field::kEccCorrectedAggregate;
  return give(into, corrected ? errors.corrected : errors.uncorrected);
}

Return rows_field(const GpuView& gpu, FieldValue& into) {
  const bool retired = into.field_id <= field::kRetiredPending;
  const bool kept = retired ? gpu.spec().ecc.has_value() && !gpu.spec().row_remapping : gpu.spec().row_remapping;
  if (!kept) return nvml::kNotSupported;
  const GpuView::Errors errors = gpu.errors(FaultKind::remap);
  switch (into.field_id) {
    case field::kRetiredSingleBit:
      return give(into, errors.corrected);
    case field::kRetiredDoubleBit:
      return give(into, errors.uncorrected);
    case field::kRetiredPending:
      return give(into, std::uint64_t{errors.pending});
    case field::kRemappedCorrected:
      return give(into, static_cast<unsigned>(errors.corrected));
    case field::kRemappedUncorrected:
      return give(into, static_cast<unsigned>(errors.uncorrected));
    case field::kRemappedPending:
      return give(into, errors.pending ? 1U : 0U);
    default:
      return give(into, errors.failure ? 1U : 0U);
  }
}

Return policy_field(const GpuView& gpu, FieldValue& into) {
  switch (into.field_id) {
    case field::kPolicyPower:
      return give(into, gpu.throttled_ns(reason::kSoftwarePowerCap));
    case field::kPolicyThermal:
      return give(into, gpu.throttled_ns(reason::kSoftwareThermal | reason::kHardwareThermal));
    case field::kPolicySyncBoost:
      return give(into, gpu.throttled_ns(reason::kSyncBoost));
    case field::kPolicyBoardLimit:
      return give(into, gpu.throttled_ns(reason::kHardwareSlowdown | reason::kHardwarePowerBrake));
    case field::kSoftwareThermalNs:
      return give(into, gpu.throttled_ns(reason::kSoftwareThermal));
    case field::kHardwareThermalNs:
      return give(into, gpu.throttled_ns(reason::kHardwareThermal));
    case field::kHardwarePowerBrakeNs:
      return give(into, gpu.throttled_ns(reason::kHardwarePowerBrake));
    default:
      return give(into, std::uint64_t{0});
  }
}

Return power_field(const GpuView& gpu, FieldValue& into) {
  const GpuSpec& spec = gpu.spec();
  constexpr unsigned kWholeGpu = 0;
  if (into.scope_id != kWholeGpu && into.field_id <= field::kPowerInstant) return nvml::kNotSupported;
  switch (into.field_id) {
    case field::kPowerAverage:  // not of GA100, nor of what is older
      if (spec.compute_major < 8 || spec.facts->chip == "GA100") return nvml::kNotSupported;
      return spec.idle_watts > 0 ? give_watts(into, gpu.average_watts()) : nvml::kNotSupported;
    case field::kPowerInstant:
      return spec.idle_watts > 0 ? give_watts(into, gpu.watts()) : nvml::kNotSupported;
    case field::kPowerMinLimit:
      return give_watts(into, spec.power_min);
    case field::kPowerMaxLimit:
      return give_watts(into, spec.power_max);
    case field::kPowerDefaultLimit:
      return give_watts(into, spec.power_default);
    default:
      return give_watts(into, spec.power_limit);
  }
}

Return energy_field(const GpuView& gpu, FieldValue& into) {
  if (gpu.spec().idle_watts <= 0 || gpu.spec().compute_major < 7) return nvml::kNotSupported;
  return give(into, static_cast<std::uint64_t>(std::llround(gpu.energy_joules() * 1000)));
}

// How many degrees are left until a limit: told instead of the limit from Ada and Hopper on.
Return margin_field(const GpuView& gpu, FieldValue& into) {
  const GpuSpec& spec = gpu.spec();
  if (spec.compute_major < 9 && !(spec.compute_major == 8 && spec.compute_minor == 9)) return nvml::kNotSupported;
  const int limit = into.field_id == field::kShutdownTlimit   ? spec.shutdown_celsius
                    : into.field_id == field::kSlowdownTlimit ? spec.slowdown_celsius
                                                              : 0;
  return limit > 0 ? give(into, spec.slowdown_celsius - limit) : nvml::kNotSupported;
}

// Of the whole device or, where the scope names one, of a link.
Return nvlink_field(const GpuView& gpu, FieldValue& into) {
  const GpuSpec& spec = gpu.spec();
  if (into.field_id == field::kNvLinkCount) return give(into, static_cast<unsigned>(spec.nvlinks));
  if (spec.nvlinks == 0 || spec.nvlink == NvlinkShape::none) return nvml::kNotSupported;
  const bool all = into.scope_id == field::kAllLinks;
  if (!all && into.scope_id >= static_cast<unsigned>(spec.nvlinks)) return nvml::kInvalidArgument;
  const std::uint64_t share = all ? 1 : static_cast<std::uint64_t>(spec.nvlinks);
  switch (into.field_id) {
    case field::kNvLinkDataSent:
    case field::kNvLinkRawSent:
      return give(into, gpu.counter(spec.nvlink_sent) / 1024 / share);
    case field::kNvLinkDataReceived:
    case field::kNvLinkRawReceived:
      return give(into, gpu.counter(spec.nvlink_received) / 1024 / share);
    case field::kNvSwitchLinks:
      return give(into, spec.nvlink == NvlinkShape::nvswitch ? static_cast<unsigned>(spec.nvlinks) : 0U);
    case field::kNvLinkSpeed:
      return give(into, static_cast<unsigned>(link_mb_per_second(spec)));
    case field::kNvLinkState:
      return all ? nvml::kInvalidArgument : give(into, link_active(gpu, static_cast<int>(into.scope_id)) ? 1U : 0U);
    case field::kNvLinkSentBytes:
    case field::kNvLinkReceivedBytes:
      if (spec.compute_major < 10) return nvml::kNotSupported;
      return give(
          into,
          gpu.counter(into.field_id == field::kNvLinkSentBytes ? spec.nvlink_sent : spec.nvlink_received) / share);
    default:
      return nvml::kNotSupported;
  }
}

Return pcie_field(const GpuView& gpu, FieldValue& into) {
  if (gpu.spec().unified_memory()) return nvml::kNotSupported;
  if (into.field_id == field::kPcieReplays) return give(into, std::uint64_t{0});
  if (gpu.spec().compute_major < 8) return nvml::kNotSupported;
  return give(into,
              gpu.counter(into.field_id == field::kPcieSentBytes ? gpu.spec().pcie_sent : gpu.spec().pcie_received));
}

Return recovery_field(const GpuView& gpu, FieldValue& into) {
  const GpuView::Errors rows = gpu.errors(FaultKind::remap);
  const bool reset = rows.pending || rows.failure;
  return give(into, static_cast<unsigned>(reset ? nvml::kRecoverGpuReset : nvml::kRecoverNothing));
}

Return answer(const GpuView& gpu, FieldValue& into) {
  const unsigned id = into.field_id;
  if (id >= field::kEccCurrent && id <= field::kEccUncorrectedAggregate) return ecc_field(gpu, into);
  if (id >= field::kRetiredSingleBit && id <= field::kRetiredPending) return rows_field(gpu, into);
  if (id >= field::kRemappedCorrected && id <= field::kRemappedFailure) return rows_field(gpu, into);
  if (id >= field::kPolicyPower && id <= field::kPolicyReliability) return policy_field(gpu, into);
  if (id >= field::kSoftwareThermalNs && id <= field::kHardwarePowerBrakeNs) return policy_field(gpu, into);
  if (id == field::kTotalEnergy || id == field::kEnergy) return energy_field(gpu, into);
  if (id >= field::kPowerAverage && id <= field::kPowerRequestedLimit) return power_field(gpu, into);
  if (id >= field::kShutdownTlimit && id <= field::kGpuMaxTlimit) return margin_field(gpu, into);
  if (id == field::kPcieReplays || id == field::kPcieSentBytes || id == field::kPcieReceivedBytes)
    return pcie_field(gpu, into);
  if (id == field::kRecoveryAction) return recovery_field(gpu, into);
  if (id == field::kMemoryTemperature) {
    const auto celsius = static_cast<unsigned>(std::lround(gpu.memory_celsius()));
    return gpu.spec().memory_temperature ? give(into, celsius) : nvml::kNotSupported;
  }
  if (id == field::kNvLinkCount || (id >= field::kNvLinkDataSent && id <= field::kNvLinkRawReceived) ||
      (id >= field::kNvLinkRemoteId && id <= field::kNvLinkReceivedBytes))
    return nvlink_field(gpu, into);
  return nvml::kInvalidArgument;
}

}  // namespace

Return nvmlDeviceGetFieldValues(nvml::Device device, int count, FieldValue* values) {
  if (values == nullptr || count <= 0) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    for (FieldValue* value = values; value != values + count; ++value) {
      value->timestamp_us = gpu.host().unix_us(gpu.time());
      value->latency_us = 0;
      value->value.as_unsigned_long_long = 0;
      value->result = answer(gpu, *value);
      if (value->result != nvml::kSuccess || !gpu.scenario().driver.blank_values) continue;
      // What DCGM writes for "not supported" in 64 bits, and -1 in 32: both were shown to people as numbers.
      const bool wide = value->value_type == nvml::kUnsignedLongLong;
      value->value.as_unsigned_long_long = wide ? 0x7ffffffffffffff2ULL : 0xffffffffULL;
    }
    return nvml::kSuccess;
  });
}

}  // namespace gpuwright::sim
