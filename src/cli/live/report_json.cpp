#include <algorithm>

#include "cli/live/report.h"
#include "cli/live/values.h"

namespace gpuwright::cli {
namespace {

using device::OverTime;

double number_of(Bytes bytes) {
  return static_cast<double>(bytes.count);
}
template <class Unit>
double number_of(Unit unit) {
  return unit.value;
}

template <class Unit>
Json over_time(const std::optional<OverTime<Unit>>& figure) {
  if (!figure) return {};
  Json json = Json::object();
  json.set("mean", number_of(figure->mean));
  json.set("p95", number_of(figure->p95));
  json.set("max", number_of(figure->max));
  json.set("known_seconds", figure->known.count());
  return json;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json gpu_json(const device::GpuReport& one) {
  Json json = Json::object();
  json.set("index", one.gpu.index);
  json.set("name", one.gpu.name.optional());
  json.set("uuid", one.gpu.uuid.optional());
  json.set("state", to_string(one.gpu.state));
  json.set("observed_seconds", one.observed.count());
  json.set("utilization_ratio", over_time(one.utilization));
  json.set("memory_used_bytes", over_time(one.memory_used));
  json.set("power_watts", over_time(one.power));
  json.set("temperature_celsius", over_time(one.temperature));
  Json energy;
  if (one.energy) {
    energy.set("joules", one.energy->total.value);
    energy.set("from_counter_seconds", one.energy->from_counter.count());
    energy.set("from_power_seconds", one.energy->from_power.count());
  }
  json.set("energy", std::move(energy));
  Json throttled = Json::object();
  for (const auto& [reason, time] : one.throttled) throttled.set(reason, time.count());
  json.set("throttled_seconds", std::move(throttled));
  json.set("throttle_known_seconds", one.throttle_known.count());
  return json;
}

// HeldMemory and UserReport name who it is by the same members.
template <class Owner>
Json owner_json(const Owner& owner) {
  Json json = Json::object();
  json.set("pid", owner.pid == 0 ? Json() : Json(owner.pid));
  json.set("user", text_or_null(owner.user));
  json.set("command", text_or_null(owner.command));
  json.set("container", text_or_null(owner.container));
  json.set("pod", text_or_null(owner.pod));
  json.set("slurm_job", text_or_null(owner.slurm_job));
  return json;
}

Json held_json(const device::HeldMemory& held) {
  Json json = owner_json(held);
  json.set("gpu", held.gpu);
  json.set("memory_bytes", held.memory.count);
  json.set("from", iso_time(held.from));
  json.set("to", iso_time(held.to));
  json.set("seconds", held.duration().count());
  json.set("still", held.still);
  return json;
}

Json user_json(const device::UserReport& user) {
  Json json = owner_json(user);
  json.set("held_seconds", user.held.count());
  json.set("busy_seconds", user.busy_known ? Json(user.busy.count()) : Json());
  json.set("memory_max_bytes", user.memory_max.count);
  json.set("energy_joules", user.energy.value);
  json.set("energy_by_use", user.energy_by_use);
  return json;
}

Json fault_json(const device::Fault& fault) {
  Json json = Json::object();
  json.set("time", iso_time(fault.time));
  json.set("gpu", fault.gpu);
  json.set("kind", to_string(fault.kind));
  json.set("text", fault.text);
  return json;
}

template <class Rows, class ToJson>
Json list_of(const Rows& rows, ToJson to_json) {
  Json list = Json::array();
  for (const auto& row : rows) list.push(to_json(row));
  return list;
}

}  // namespace

Json report_json(const device::Report& report, const std::vector<std::string>& damage) {
  Json answer = Json::object();
  answer.set("schema", "gpuwright.report/1");
  answer.set("hostname", report.hostname);
  answer.set("simulated", text_or_null(report.simulated));
  answer.set("from", iso_time(report.from));
  answer.set("to", iso_time(report.to));
  answer.set("snapshots", report.snapshots);
  answer.set("observed_seconds", report.observed.count());
  answer.set("gpus", list_of(report.gpus, gpu_json));
  answer.set("users", list_of(report.users, user_json));
  answer.set("processes", list_of(report.processes, user_json));
  answer.set("held_while_idle", list_of(report.held, held_json));
  answer.set("faults", list_of(report.faults, fault_json));
  answer.set("faults_left_out", report.faults_left_out);
  answer.set("damage", list_of(damage, [](const std::string& text) { return Json(text); }));
  return answer;
}

}  // namespace gpuwright::cli
