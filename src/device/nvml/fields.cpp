// Power, energy, memory temperature, traffic and errors by nvmlDeviceGetFieldValues: one trip to the driver answers for
// all, where asking each by its own function takes a trip each and nvmlDeviceGetPcieThroughput blocks for 20 ms.
#include <array>
#include <cmath>
#include <vector>

#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::int64_t kHealthPeriod = 5'000'000'000;
constexpr double kKib = 1024;
constexpr unsigned kMostLinks = 64;

class Fields {
 public:
  void want(std::initializer_list<unsigned> ids, unsigned scope = 0) {
    for (const unsigned id : ids) {
      nvml::FieldValue value{};
      value.field_id = id;
      value.scope_id = scope;
      value.result = nvml::kFunctionNotFound;
      values_.push_back(value);
    }
  }

  void ask(CardAsker& ask, nvml::Device device) {
    if (values_.empty()) return;
    Asker& plain = ask.plain();
    const auto& function = ask.functions().nvmlDeviceGetFieldValues;
    code_ = plain(function, device, static_cast<int>(values_.size()), values_.data());
    if (code_ == nvml::kSuccess || !function || !ask.fine()) return;
    // Some drivers refuse the whole list for one field that they do not know.
    for (nvml::FieldValue& value : values_) {
      const nvml::Return code = plain(function, device, 1, &value);
      if (code != nvml::kSuccess) value.result = code;
      if (!ask.fine()) return;
    }
  }

  nvml::Return code(unsigned id, unsigned scope = 0) const { return find(id, scope).result; }

  Reading<std::uint64_t> number(unsigned id, unsigned scope = 0) const {
    const nvml::FieldValue& field = find(id, scope);
    if (field.result != nvml::kSuccess) return why_of(field.result);
    return value_of(field);
  }
  Reading<std::int64_t> count(unsigned id) const {
    const Reading<std::uint64_t> value = number(id);
    return value ? nvidia::count(nvml::kSuccess, *value) : Reading<std::int64_t>(value.why());
  }
  Reading<bool> flag(unsigned id) const {
    const Reading<std::uint64_t> value = number(id);
    return value ? yes_or_no(nvml::kSuccess, static_cast<std::int64_t>(*value)) : Reading<bool>(value.why());
  }
  // How many bits the driver counts in.
  int bits(unsigned id, unsigned scope = 0) const { return find(id, scope).value_type == nvml::kUnsignedInt ? 32 : 64; }

 private:
  const nvml::FieldValue& find(unsigned id, unsigned scope) const {
    for (const nvml::FieldValue& value : values_)
      if (value.field_id == id && value.scope_id == scope) return value;
    static const nvml::FieldValue kMissing = [] {
      nvml::FieldValue value{};
      value.result = nvml::kFunctionNotFound;
      return value;
    }();
    return kMissing;
  }

  static Reading<std::uint64_t> value_of(const nvml::FieldValue& field) {
    switch (field.value_type) {
      case nvml::kDouble:
        if (!std::isfinite(field.value.as_double) || field.value.as_double < 0 || field.value.as_double > 9e18)
          return Why::implausible;
        return static_cast<std::uint64_t>(field.value.as_double);
      case nvml::kUnsignedInt:
        if (is_blank32(field.value.as_unsigned) && !wraps(field.field_id)) return Why::implausible;
        return std::uint64_t{field.value.as_unsigned};
      case nvml::kUnsignedLong:
        return whole(field.value.as_unsigned_long);
      case nvml::kUnsignedLongLong:
        return whole(field.value.as_unsigned_long_long);
      case nvml::kSignedLongLong:
        if (field.value.as_long_long < 0) return Why::implausible;
        return whole(static_cast<std::uint64_t>(field.value.as_long_long));
      case nvml::kSignedInt:
        if (field.value.as_int < 0) return Why::implausible;
        return static_cast<std::uint64_t>(field.value.as_int);
      case nvml::kUnsignedShort:
        return std::uint64_t{field.value.as_unsigned_short};
    }
    return Why::implausible;
  }
  static Reading<std::uint64_t> whole(std::uint64_t value) {
    return is_blank(value) ? Reading<std::uint64_t>(Why::implausible) : Reading<std::uint64_t>(value);
  }
  // Counters that may stand at any value of their 32 bits.
  static bool wraps(unsigned id) { return id == nvml::field::kPcieSentBytes || id == nvml::field::kPcieReceivedBytes; }

  std::vector<nvml::FieldValue> values_;
  nvml::Return code_ = nvml::kSuccess;
};

template <class Unit, class Convert>
Reading<Unit> converted(const Reading<std::uint64_t>& value, Convert convert) {
  return value ? convert(*value) : Reading<Unit>(value.why());
}

// ---------------------------------------------------------------- power and temperature

void tell_power(Gpu& gpu, CardAsker& ask, const Fields& fields) {
  const auto watts = [&fields](unsigned id) {
    return converted<Watts>(fields.number(id), [](std::uint64_t mw) { return milliwatts(nvml::kSuccess, mw); });
  };
  gpu.power = watts(nvml::field::kPowerAverage);
  gpu.power_instant = watts(nvml::field::kPowerInstant);
  if (!gpu.power) {
    unsigned value = 0;
    const nvml::Return code = ask(ask.functions().nvmlDeviceGetPowerUsage, &value);
    gpu.power = milliwatts(code, value);
  }
  const auto joules = [](std::uint64_t mj) { return Reading<Joules>(Joules{static_cast<double>(mj) / 1000.0}); };
  gpu.energy = converted<Joules>(fields.number(nvml::field::kTotalEnergy), joules);
  if (!gpu.energy && gpu.energy.why() == Why::not_supported) {
    unsigned long long value = 0;
    const nvml::Return code = ask(ask.functions().nvmlDeviceGetTotalEnergyConsumption, &value);
    gpu.energy = converted<Joules>(code == nvml::kSuccess && !is_blank(value) ? Reading<std::uint64_t>(value)
                                                                              : Reading<std::uint64_t>(why_of(code)),
                                   joules);
  }
  gpu.memory_temperature = converted<Celsius>(fields.number(nvml::field::kMemoryTemperature), [](std::uint64_t value) {
    // Boards without the sensor say 0.
    return value == 0 ? Reading<Celsius>(Why::not_supported)
                      : degrees(nvml::kSuccess, static_cast<std::int64_t>(value));
  });
}

// ---------------------------------------------------------------- traffic

void want_traffic(Fields& fields, const Card& card) {
  fields.want({nvml::field::kPcieSentBytes, nvml::field::kPcieReceivedBytes});
  using Counters = Card::LinkCounters;
  if (card.link_counters == Counters::untried || card.link_counters == Counters::total)
    fields.want({nvml::field::kNvLinkDataSent, nvml::field::kNvLinkDataReceived}, nvml::field::kAllLinks);
  if (card.link_counters == Counters::untried) fields.want({nvml::field::kNvLinkCount});
  if (card.link_counters == Counters::each)
    for (unsigned link = 0; link < card.link_count.value_or(0); ++link)
      fields.want({nvml::field::kNvLinkSentBytes, nvml::field::kNvLinkReceivedBytes}, link);
}

void choose_link_counters(Card& card, const Fields& fields) {
  using Counters = Card::LinkCounters;
  if (card.link_counters != Counters::untried) return;
  const auto links = fields.number(nvml::field::kNvLinkCount);
  if (links && *links <= kMostLinks) card.link_count = static_cast<unsigned>(*links);
  if (fields.code(nvml::field::kNvLinkDataSent, nvml::field::kAllLinks) == nvml::kSuccess)
    card.link_counters = Counters::total;
  else
    card.link_counters = card.link_count.value_or(0) > 0 ? Counters::each : Counters::none;
}

// The sum over the links; links that are down do not tell.
Reading<std::uint64_t> sum_of_links(const Card& card, const Fields& fields, unsigned id) {
  Reading<std::uint64_t> sum = Why::not_supported;
  for (unsigned link = 0; link < card.link_count.value_or(0); ++link)
    if (const auto value = fields.number(id, link)) sum = sum.value_or(0) + *value;
  return sum;
}

void tell_traffic(Card& card, const Fields& fields, std::int64_t now_ns) {
  Gpu& gpu = card.row;
  const auto bus = [&](ByteRate& rate, unsigned id) {
    return rate.take(fields.number(id), 1, fields.bits(id), now_ns);
  };
  gpu.pcie_sent = bus(card.pcie_sent, nvml::field::kPcieSentBytes);
  gpu.pcie_received = bus(card.pcie_received, nvml::field::kPcieReceivedBytes);
  card.pcie_needs_meter = !gpu.pcie_sent && gpu.pcie_sent.why() == Why::not_supported;
  choose_link_counters(card, fields);
  using Counters = Card::LinkCounters;
  if (card.link_counters == Counters::none) {
    gpu.nvlink_sent = gpu.nvlink_received = Why::not_supported;
  } else if (card.link_counters == Counters::total) {
    const auto total = [&](ByteRate& rate, unsigned id) {
      return rate.take(fields.number(id, nvml::field::kAllLinks), kKib, 64, now_ns);
    };
    gpu.nvlink_sent = total(card.link_sent, nvml::field::kNvLinkDataSent);
    gpu.nvlink_received = total(card.link_received, nvml::field::kNvLinkDataReceived);
  } else {
    const auto each = [&](ByteRate& rate, unsigned id) {
      const auto sum = sum_of_links(card, fields, id);
      // Asked for the first time in the round after the choice.
      return fields.code(id, 0) == nvml::kFunctionNotFound ? Reading<BytesPerSecond>(Why::needs_two_samples)
                                                           : rate.take(sum, 1, 64, now_ns);
    };
    gpu.nvlink_sent = each(card.link_sent, nvml::field::kNvLinkSentBytes);
    gpu.nvlink_received = each(card.link_received, nvml::field::kNvLinkReceivedBytes);
  }
}

// ---------------------------------------------------------------- errors

void want_health(Fields& fields) {
  fields.want({nvml::field::kEccCorrectedVolatile, nvml::field::kEccUncorrectedVolatile,
               nvml::field::kEccCorrectedAggregate, nvml::field::kEccUncorrectedAggregate,
               nvml::field::kRetiredSingleBit, nvml::field::kRetiredDoubleBit, nvml::field::kRetiredPending,
               nvml::field::kRemappedCorrected, nvml::field::kRemappedUncorrected, nvml::field::kRemappedPending,
               nvml::field::kRemappedFailure, nvml::field::kPcieReplays, nvml::field::kRecoveryAction});
}

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

void tell_ecc(Gpu& gpu, CardAsker& ask, const Fields& fields) {
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

void tell_rows(Gpu& gpu, CardAsker& ask, const Fields& fields) {
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

void tell_pages(Gpu& gpu, CardAsker& ask, const Fields& fields) {
  gpu.retired_pages_corrected = retired(ask, fields.count(nvml::field::kRetiredSingleBit), nvml::kRetiredSingleBit);
  gpu.retired_pages_uncorrected = retired(ask, fields.count(nvml::field::kRetiredDoubleBit), nvml::kRetiredDoubleBit);
  gpu.retirement_pending = fields.flag(nvml::field::kRetiredPending);
  if (gpu.retirement_pending || gpu.retirement_pending.why() != Why::not_supported) return;
  nvml::EnableState pending = 0;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetRetiredPagesPendingStatus, &pending);
  gpu.retirement_pending = yes_or_no(code, pending);
}

void tell_health(Gpu& gpu, CardAsker& ask, const Fields& fields) {
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

}  // namespace

void read_fields(Card& card, CardAsker& ask, const Round& round) {
  const bool health = round.wants.health && due(card.health_read_ns, round.now_ns, kHealthPeriod);
  Fields fields;
  fields.want({nvml::field::kPowerAverage, nvml::field::kPowerInstant, nvml::field::kTotalEnergy,
               nvml::field::kMemoryTemperature});
  if (round.wants.traffic) want_traffic(fields, card);
  if (health) want_health(fields);
  fields.ask(ask, card.handle);
  if (!ask.fine()) return;
  tell_power(card.row, ask, fields);
  if (round.wants.traffic) tell_traffic(card, fields, round.now_ns);
  if (!health || !ask.fine()) return;
  card.health_read_ns = round.now_ns;
  tell_health(card.row, ask, fields);
}

}  // namespace gpuwright::device::nvidia
