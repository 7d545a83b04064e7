// Power, energy and memory temperature; and the trip to the driver by which these, traffic and errors are asked for
// together, where asking each by its own function takes a trip each and nvmlDeviceGetPcieThroughput blocks for 20 ms.
#include "device/nvml/card.h"
#include "device/nvml/field_batch.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::int64_t kHealthPeriod = 5'000'000'000;

template <class Unit, class Convert>
Reading<Unit> converted(const Reading<std::uint64_t>& value, Convert convert) {
  return value ? convert(*value) : Reading<Unit>(value.why());
}

void tell_power(Gpu& gpu, CardAsker& ask, const FieldBatch& fields) {
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

}  // namespace

void read_fields(Card& card, CardAsker& ask, const Round& round) {
  const bool health = round.wants.health && due(card.health_read_ns, round.now_ns, kHealthPeriod);
  FieldBatch fields;
  fields.want({nvml::field::kPowerAverage, nvml::field::kPowerInstant, nvml::field::kTotalEnergy,
               nvml::field::kMemoryTemperature});
  if (round.wants.traffic) want_traffic(fields, card);
  if (health) want_health(fields);
  fields.ask(ask.plain(), card.handle);
  if (!ask.fine()) return;
  tell_power(card.row, ask, fields);
  if (round.wants.traffic) tell_traffic(card, fields, round.now_ns);
  if (!health || !ask.fine()) return;
  card.health_read_ns = round.now_ns;
  tell_health(card.row, ask, fields);
}

}  // namespace gpuwright::device::nvidia
