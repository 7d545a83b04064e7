#include "cli/live/stat_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/live/live.h"
#include "cli/live/processes.h"
#include "cli/live/values.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Snapshot;

template <class T>
void set_reading(Json& json, Json& unknown, std::string_view name, const device::Reading<T>& reading) {
  json.set(name, reading ? Json(*reading) : Json());
  if (!reading) unknown.set(name, to_string(reading.why()));
}

Json drivers_json(const Snapshot& snapshot) {
  Json list = Json::array();
  for (const device::Driver& driver : snapshot.drivers) {
    Json json = Json::object(), unknown = Json::object();
    json.set("source", driver.source);
    set_reading(json, unknown, "version", driver.version);
    set_reading(json, unknown, "library_version", driver.library_version);
    set_reading(json, unknown, "cuda_version", driver.cuda_version);
    json.set("unknown", std::move(unknown));
    list.push(std::move(json));
  }
  return list;
}

Json sources_json(const Snapshot& snapshot) {
  static constexpr std::string_view kOutcomes[] = {"found", "absent", "failed"};
  Json list = Json::array();
  for (const device::SourceReport& report : snapshot.sources) {
    Json json = Json::object();
    json.set("source", report.source);
    json.set("outcome", kOutcomes[static_cast<std::size_t>(report.outcome)]);
    json.set("text", report.text);
    json.set("hint", report.hint.empty() ? Json() : Json(report.hint));
    list.push(std::move(json));
  }
  return list;
}

Json xids_json(const Gpu& gpu) {
  Json list = Json::array();
  for (const device::XidEvent& xid : gpu.xids) {
    Json json = Json::object();
    json.set("code", xid.code);
    json.set("time", iso_time(xid.time));
    json.set("count", xid.count);
    list.push(std::move(json));
  }
  return list;
}

Json links_json(const Gpu& gpu) {
  Json list = Json::array();
  for (const device::Link& link : gpu.links) {
    Json json = Json::object(), unknown = Json::object();
    json.set("number", link.number);
    set_reading(json, unknown, "active", link.active);
    set_reading(json, unknown, "remote", link.remote);
    json.set("unknown", std::move(unknown));
    list.push(std::move(json));
  }
  return list;
}

Json gpu_json(const Snapshot& snapshot, const Gpu& gpu) {
  Json json = object_of(fields_of(snapshot, gpu));
  Json instances = Json::array();
  for (const device::MigInstance& instance : gpu.mig_instances) instances.push(object_of(fields_of(instance)));
  json.set("xids", xids_json(gpu));
  json.set("mig_instances", std::move(instances));
  json.set("links", links_json(gpu));
  return json;
}

Json chosen_json(const Snapshot& snapshot, const Gpu& gpu, const std::vector<std::string>& only) {
  const std::vector<Field> all = fields_of(snapshot, gpu);
  std::vector<Field> chosen = {all.front()};
  for (const std::string& name : only)
    for (const Field& field : all)
      if (field.name == name && name != chosen.front().name) chosen.push_back(field);
  return object_of(chosen);
}

// What people may have written in `nvidia-smi --query-gpu`, and the field that holds it here.
const std::map<std::string_view, std::string_view>& names_of_nvidia_smi() {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"utilization.gpu", "utilization_ratio"},
      {"utilization.memory", "memory_utilization_ratio"},
      {"utilization.encoder", "encoder_utilization_ratio"},
      {"utilization.decoder", "decoder_utilization_ratio"},
      {"memory.total", "memory_total_bytes"},
      {"memory.used", "memory_used_bytes"},
      {"memory.free", "memory_free_bytes"},
      {"memory.reserved", "memory_reserved_bytes"},
      {"temperature.gpu", "temperature_celsius"},
      {"temperature.memory", "memory_temperature_celsius"},
      {"power.draw", "power_watts"},
      {"power.draw.instant", "power_instant_watts"},
      {"power.limit", "power_limit_watts"},
      {"enforced.power.limit", "power_limit_watts"},
      {"clocks.sm", "sm_clock_hertz"},
      {"clocks.gr", "graphics_clock_hertz"},
      {"clocks.mem", "memory_clock_hertz"},
      {"clocks.video", "video_clock_hertz"},
      {"fan.speed", "fan_ratio"},
      {"pstate", "performance_state"},
      {"gpu_name", "name"},
      {"gpu_uuid", "uuid"},
      {"gpu_bus_id", "pci_address"},
      {"pci.bus_id", "pci_address"},
      {"vbios_version", "vbios"},
      {"compute_cap", "compute_capability"},
      {"clocks_event_reasons.active", "throttle_reasons"},
      {"clocks_throttle_reasons.active", "throttle_reasons"},
      {"ecc.errors.uncorrected.volatile.total", "ecc_uncorrected_volatile"},
      {"ecc.errors.corrected.volatile.total", "ecc_corrected_volatile"},
      {"pcie.link.gen.current", "pcie_generation"},
      {"pcie.link.width.current", "pcie_width"},
      {"mig.mode.current", "mig_mode"},
  };
  return kNames;
}

}  // namespace

Json snapshot_head(std::string_view schema, const Snapshot& snapshot) {
  Json answer = Json::object();
  answer.set("schema", schema);
  answer.set("hostname", snapshot.hostname);
  answer.set("time", iso_time(snapshot.time));
  answer.set("simulated", snapshot.simulated.empty() ? Json() : Json(snapshot.simulated));
  // Why there is less to tell than there should be.
  if (is_missing(snapshot)) answer.set("sources", sources_json(snapshot));
  return answer;
}

Json stat_json(const Snapshot& snapshot, const std::optional<std::vector<std::string>>& only) {
  Json answer = snapshot_head("gpuwright.stat/1", snapshot);
  Json gpus = Json::array();
  for (const Gpu& gpu : snapshot.gpus) gpus.push(only ? chosen_json(snapshot, gpu, *only) : gpu_json(snapshot, gpu));
  if (!only) answer.set("drivers", drivers_json(snapshot));
  answer.set("gpus", std::move(gpus));
  if (only) return answer;
  Json processes = Json::array();
  for (const device::Process* process : in_order(snapshot)) processes.push(object_of(fields_of(*process)));
  answer.set("processes", std::move(processes));
  answer.set("sources", sources_json(snapshot));
  answer.set("vendor_calls", snapshot.vendor_calls);
  return answer;
}

std::string stat_csv_header(const Snapshot& snapshot, const std::vector<std::string>& fields) {
  std::vector<std::string> cells = {"time"};
  cells.insert(cells.end(), fields.begin(), fields.end());
  if (!snapshot.simulated.empty()) cells.emplace_back("simulated");
  return csv_line(cells);
}

std::string stat_csv_lines(const Snapshot& snapshot, const std::vector<std::string>& fields) {
  std::string lines;
  for (const Gpu& gpu : snapshot.gpus) {
    std::map<std::string, Json> values;
    for (Field& field : fields_of(snapshot, gpu)) values[field.name] = std::move(field.value);
    std::vector<std::string> cells = {iso_time(snapshot.time)};
    for (const std::string& name : fields) cells.push_back(csv_cell(values[name]));
    if (!snapshot.simulated.empty()) cells.push_back(csv_cell(snapshot.simulated));
    lines += csv_line(cells);
  }
  return lines;
}

Result<std::vector<std::string>> parse_fields(std::string_view text) {
  const std::vector<std::string> known = gpu_field_names();
  std::vector<std::string> fields;
  for (std::string_view word : split(text, ',')) {
    const std::string name(trim(word));
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      fields.push_back(name);
      continue;
    }
    std::string hint = "'gpuwright stat --fields help' lists them";
    if (const auto theirs = names_of_nvidia_smi().find(name); theirs != names_of_nvidia_smi().end())
      hint = fmt::format("what nvidia-smi calls {} is {}", name, theirs->second);
    else if (const auto nearest = nearest_name(name, known))
      hint = fmt::format("did you mean '{}'?", *nearest);
    return fail(ErrorCode::bad_input, fmt::format("--fields: a GPU has no field '{}'", name), std::move(hint));
  }
  return fields;
}

std::string field_list() {
  std::string text;
  for (const std::string& name : gpu_field_names()) text += name + "\n";
  return text;
}

bool need_traffic(const std::optional<std::vector<std::string>>& fields) {
  if (!fields) return true;
  return std::any_of(fields->begin(), fields->end(),
                     [](const std::string& name) { return name.find("_per_second") != std::string::npos; });
}

}  // namespace gpuwright::cli
