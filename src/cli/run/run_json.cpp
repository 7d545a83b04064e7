#include <algorithm>

#include "cli/explain_answer.h"
#include "cli/live/report.h"
#include "cli/live/values.h"
#include "cli/run/explain_job.h"
#include "cli/run/run_report.h"

namespace gpuwright::cli {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json bytes_or_null(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->count) : Json();
}

// [[seconds, bytes], ...]
Json curve_json(const std::vector<Curve::Point>& points) {
  Json list = Json::array();
  for (const Curve::Point& point : points) list.push(Json::array().push(point.seconds).push(point.size.count));
  return list;
}

Json memory_json(const WatchedGpu& gpu) {
  Json memory = Json::object();
  memory.set("total_bytes", bytes_or_null(gpu.gpu.memory_total.optional()));
  memory.set("used_at_start_bytes", bytes_or_null(gpu.at_start));
  const bool known = !gpu.memory.empty();
  memory.set("peak_bytes", known ? Json(gpu.memory.peak().size.count) : Json());
  memory.set("peak_seconds", known ? Json(gpu.memory.peak().seconds) : Json());
  memory.set("last_bytes", known ? Json(gpu.memory.last().size.count) : Json());
  memory.set("curve", curve_json(gpu.memory.whole()));
  memory.set("last_minute", curve_json(gpu.memory.last_seconds(60)));
  return memory;
}

// What report_json() says of the GPU, and what is only known of the job.
Json gpu_json(const WatchedGpu& gpu, const Json& reports) {
  Json json = Json::object();
  for (const Json& report : reports.items())
    if (const Json* index = report.find("index"); index != nullptr && index->as_int() == gpu.gpu.index) json = report;
  json.set("index", gpu.gpu.index);
  json.set("name", gpu.gpu.name.optional());
  json.set("uuid", gpu.gpu.uuid.optional());
  json.set("state", to_string(gpu.state));
  json.set("known_by", gpu.claim == Claim::process ? "process" : "growth");
  json.set("shared", gpu.shared);
  json.set("memory", memory_json(gpu));
  return json;
}

Json host_json(const Outcome& outcome) {
  const HostUse& host = outcome.gpus.host;
  return Json::object()
      .set("processors", outcome.processors)
      .set("user_seconds", outcome.end.user_seconds)
      .set("system_seconds", outcome.end.system_seconds)
      .set("largest_process_bytes", outcome.end.resident_peak_bytes)
      .set("memory_peak_bytes", host.processes > 0 ? Json(host.resident_peak.count) : Json())
      .set("memory_last_bytes", host.processes > 0 ? Json(host.resident.count) : Json())
      .set("host_total_bytes", bytes_or_null(host.host_total))
      .set("host_available_bytes", bytes_or_null(host.host_available));
}

Json xid_json(const SeenXid& xid) {
  return Json::object()
      .set("gpu", xid.gpu)
      .set("pci_address", text_or_null(xid.pci_address))
      .set("xid", xid.event.code)
      .set("count", xid.event.count)
      .set("time", iso_time(xid.event.time));
}

}  // namespace

Json to_json(const Outcome& outcome) {
  const Json report = report_json(outcome.gpus.report, {});
  const Json* reports = report.find("gpus");
  Json command = Json::array(), gpus = Json::array(), xids = Json::array(), advice = Json::array(),
       notes = Json::array();
  for (const std::string& word : outcome.command) command.push(word);
  for (const WatchedGpu* gpu : outcome.gpus.of_job()) gpus.push(gpu_json(*gpu, reports ? *reports : Json::array()));
  for (const SeenXid& xid : outcome.gpus.xids) xids.push(xid_json(xid));
  for (const RunAdvice& one : outcome.advice) advice.push(Json().set("id", one.id).set("text", one.text));
  for (const std::string& note : outcome.notes) notes.push(note);
  Json explanation;
  if (outcome.explanation) explanation = to_json(*outcome.explanation, sources_of(*outcome.explanation, outcome));
  return Json::object()
      .set("schema", "gpuwright.run/1")
      .set("command", std::move(command))
      .set("hostname", text_or_null(outcome.gpus.hostname))
      .set("simulated", text_or_null(outcome.gpus.simulated))
      .set("began", outcome.began)
      .set("seconds", outcome.seconds)
      .set("exit_code", outcome.exit_code)
      .set("signal", outcome.end.signal == 0 ? Json() : Json(signal_name(outcome.end.signal)))
      .set("failed", outcome.failed())
      .set("left_running", outcome.left_running)
      .set("printed_bytes", outcome.bytes_printed)
      .set("unread_bytes", outcome.bytes_unread)
      .set("host", host_json(outcome))
      .set("gpus_found", static_cast<std::int64_t>(outcome.gpus.gpus.size()))
      .set("gpus", std::move(gpus))
      .set("xids", std::move(xids))
      .set("kernel_log_read", outcome.kernel_log_read)
      .set("advice", std::move(advice))
      .set("explanation", std::move(explanation))
      .set("notes", std::move(notes));
}

}  // namespace gpuwright::cli
