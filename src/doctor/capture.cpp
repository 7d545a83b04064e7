#include "doctor/capture.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "device/fields.h"

namespace gpuwright::doctor {
namespace {

using device::Gpu;
using device::Reading;
using device::Snapshot;
using device::SourceReport;
using device::State;
using device::Vendor;

constexpr std::array<std::string_view, 3> kOutcomes = {"found", "absent", "failed"};

template <class Unit>
Json json_of(const Unit& value) {
  if constexpr (std::is_same_v<Unit, Bytes>)
    return value.count;
  else if constexpr (std::is_same_v<Unit, device::ThrottleReasons>)
    return static_cast<std::int64_t>(value.bits);
  else if constexpr (std::is_same_v<Unit, std::string> || std::is_same_v<Unit, bool> ||
                     std::is_same_v<Unit, std::int64_t>)
    return value;
  else
    return value.value;
}

void read_value(const Json& json, Reading<std::string>& reading) {
  if (const auto text = json.as_string()) reading = std::string(*text);
}
void read_value(const Json& json, Reading<bool>& reading) {
  if (const auto value = json.as_bool()) reading = *value;
}
void read_value(const Json& json, Reading<std::int64_t>& reading) {
  if (const auto value = json.as_int()) reading = *value;
}
void read_value(const Json& json, Reading<Bytes>& reading) {
  if (const auto value = json.as_int()) reading = Bytes{*value};
}
void read_value(const Json& json, Reading<device::ThrottleReasons>& reading) {
  if (const auto value = json.as_int(); value && *value >= 0)
    reading = device::ThrottleReasons{static_cast<std::uint64_t>(*value)};
}
template <class Unit>
void read_value(const Json& json, Reading<Unit>& reading) {
  if (const auto value = json.as_double()) reading = Unit{*value};
}

std::string text_of(const Json& row, std::string_view name) {
  const Json* member = row.find(name);
  return member != nullptr && member->is_string() ? std::string(*member->as_string()) : std::string();
}

template <class Enum>
std::optional<Enum> named(std::string_view name, int count) {
  for (int i = 0; i < count; ++i)
    if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return std::nullopt;
}

constexpr int kVendors = 5, kStates = 8;

Result<Gpu> gpu_of(const Json& row, int index) {
  Gpu gpu;
  gpu.index = index;
  gpu.source = text_of(row, "source");
  gpu.state_detail = text_of(row, "detail");
  const auto vendor = named<Vendor>(text_of(row, "vendor"), kVendors);
  const auto state = row.find("state") == nullptr ? State::ok : named<State>(text_of(row, "state"), kStates);
  if (!vendor || !state)
    return fail_at(ErrorCode::bad_input, {"gpuwright-host.json", {}, {}},
                   fmt::format("gpus: row {} has no vendor or state that is known", index));
  gpu.vendor = *vendor;
  gpu.state = *state;
  device::for_each_reading_of_gpu(gpu, [&](const char* name, auto& reading) {
    if (const Json* value = row.find(name)) read_value(*value, reading);
  });
  if (const Json* unified = row.find("unified_memory")) gpu.unified_memory = unified->as_bool().value_or(false);
  if (const Json* links = row.find("links"))
    for (const Json& link : links->items()) {
      device::Link one;
      one.number = static_cast<int>(gpu.links.size());
      if (const auto active = link.as_bool()) one.active = *active;
      gpu.links.push_back(std::move(one));
    }
  if (const Json* count = row.find("mig_instance_count"))
    if (const auto number = count->as_int(); number && *number > 0 && *number <= 64)
      gpu.mig_instances.resize(static_cast<std::size_t>(*number));
  return gpu;
}

SourceReport report_of(const Json& row) {
  SourceReport report;
  report.source = text_of(row, "source");
  const std::string outcome = text_of(row, "outcome");
  for (std::size_t i = 0; i < kOutcomes.size(); ++i)
    if (kOutcomes[i] == outcome) report.outcome = static_cast<SourceReport::Outcome>(i);
  report.text = text_of(row, "text");
  return report;
}

}  // namespace

Result<std::optional<Snapshot>> captured_snapshot(const Host& host) {
  const Json* gpus = host.captured("gpus");
  const Json* sources = host.captured("sources");
  if (gpus == nullptr && sources == nullptr) return std::nullopt;
  Snapshot snapshot;
  if (gpus != nullptr)
    for (const Json& row : gpus->items())
      snapshot.gpus.push_back(GW_TRY(gpu_of(row, static_cast<int>(snapshot.gpus.size()))));
  if (sources != nullptr)
    for (const Json& row : sources->items()) snapshot.sources.push_back(report_of(row));
  if (const Json* drivers = host.captured("drivers"))
    for (const Json& row : drivers->items()) {
      device::Driver driver;
      driver.source = text_of(row, "source");
      for (const auto& [name, reading] :
           {std::pair{"version", &driver.version}, std::pair{"library_version", &driver.library_version},
            std::pair{"cuda_version", &driver.cuda_version}})
        if (const Json* value = row.find(name)) read_value(*value, *reading);
      snapshot.drivers.push_back(std::move(driver));
    }
  return snapshot;
}

void capture(const Snapshot& snapshot, Json& host_file) {
  Json gpus = Json::array(), sources = Json::array(), drivers = Json::array();
  for (const Gpu& gpu : snapshot.gpus) {
    Json row;
    row.set("vendor", to_string(gpu.vendor)).set("source", gpu.source).set("state", to_string(gpu.state));
    if (!gpu.state_detail.empty()) row.set("detail", gpu.state_detail);
    if (gpu.unified_memory) row.set("unified_memory", true);
    device::for_each_reading_of_gpu(gpu, [&](std::string_view name, const auto& reading) {
      if (reading.known() && name != "serial") row.set(name, json_of(*reading));
    });
    Json links = Json::array();
    for (const device::Link& link : gpu.links) links.push(link.active ? Json(*link.active) : Json());
    if (!gpu.links.empty()) row.set("links", std::move(links));
    if (!gpu.mig_instances.empty()) row.set("mig_instance_count", static_cast<std::int64_t>(gpu.mig_instances.size()));
    gpus.push(std::move(row));
  }
  for (const SourceReport& report : snapshot.sources)
    sources.push(Json()
                     .set("source", report.source)
                     .set("outcome", kOutcomes[static_cast<std::size_t>(report.outcome)])
                     .set("text", report.text));
  for (const device::Driver& driver : snapshot.drivers) {
    Json row = Json().set("source", driver.source);
    if (driver.version) row.set("version", *driver.version);
    if (driver.library_version) row.set("library_version", *driver.library_version);
    if (driver.cuda_version) row.set("cuda_version", *driver.cuda_version);
    drivers.push(std::move(row));
  }
  host_file.set("gpus", std::move(gpus)).set("sources", std::move(sources)).set("drivers", std::move(drivers));
}

}  // namespace gpuwright::doctor
