#include "cli/live/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <ctime>

#include "base/text.h"
#include "device/fields.h"

namespace gpuwright::cli {
namespace {

using device::Reading;

Json json_value(const std::string& text) {
  return text;
}
Json json_value(std::int64_t number) {
  return number;
}
Json json_value(bool flag) {
  return flag;
}
Json json_value(Bytes bytes) {
  return bytes.count;
}
Json json_value(device::UnixTime time) {
  return iso_time(time);
}
Json json_value(device::ThrottleReasons reasons) {
  Json list = Json::array();
  for (std::string_view name : names_of(reasons)) list.push(name);
  return list;
}
// Watts, Hertz, Ratio and the other units that hold one double.
template <class Unit>
Json json_value(Unit unit) {
  return unit.value;
}

template <class T>
Field field(std::string_view name, const Reading<T>& reading) {
  if (reading) return {std::string(name), json_value(*reading), {}};
  return {std::string(name), {}, std::string(to_string(reading.why()))};
}

// For the readings of a Gpu, a Process or a MigInstance.
auto append_to(std::vector<Field>& fields) {
  return [&fields](std::string_view name, const auto& reading) { fields.push_back(field(name, reading)); };
}

std::tm utc(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

std::string formatted(const std::tm& parts, const char* format) {
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

std::int64_t floor_seconds(device::UnixTime time) {
  constexpr std::int64_t kNano = 1'000'000'000;
  return time.nanoseconds / kNano - (time.nanoseconds % kNano < 0 ? 1 : 0);
}

template <class Names>
std::vector<std::string> names_of_fields(const Names& fields) {
  std::vector<std::string> names;
  for (const Field& one : fields) names.push_back(one.name);
  return names;
}

}  // namespace

std::vector<Field> fields_of(const device::Snapshot& snapshot, const device::Gpu& gpu) {
  std::vector<Field> fields = {
      {"index", gpu.index, {}},
      {"vendor", to_string(gpu.vendor), {}},
      {"vendor_index", gpu.vendor_index, {}},
      {"source", gpu.source, {}},
      {"state", to_string(gpu.state), {}},
      {"state_detail", gpu.state_detail.empty() ? Json() : Json(gpu.state_detail), {}},
      {"unified_memory", gpu.unified_memory, {}},
      {"catalog_id", gpu.catalog_id.empty() ? Json() : Json(gpu.catalog_id), {}},
  };
  device::for_each_reading_of_gpu(gpu, append_to(fields));
  fields.push_back(field("memory_unattributed_bytes", unattributed_memory(snapshot, gpu)));
  return fields;
}

std::vector<Field> fields_of(const device::Process& process) {
  Json kinds = Json::array();
  if (process.kind & device::process_kind::kCompute) kinds.push("compute");
  if (process.kind & device::process_kind::kGraphics) kinds.push("graphics");
  if (process.kind & device::process_kind::kMps) kinds.push("mps");
  std::vector<Field> fields = {
      {"gpu", process.gpu, {}},
      {"pid", process.pid, {}},
      {"kinds", std::move(kinds), {}},
  };
  device::for_each_reading_of_process(process, append_to(fields));
  return fields;
}

std::vector<Field> fields_of(const device::MigInstance& instance) {
  std::vector<Field> fields = {
      {"gpu_instance", instance.gpu_instance, {}},
      {"compute_instance", instance.compute_instance, {}},
  };
  device::for_each_reading_of_instance(instance, append_to(fields));
  return fields;
}

std::vector<std::string> gpu_field_names() {
  return names_of_fields(fields_of(device::Snapshot{}, device::Gpu{}));
}

std::vector<std::string> process_field_names() {
  return names_of_fields(fields_of(device::Process{}));
}

Json object_of(const std::vector<Field>& fields) {
  Json object = Json::object();
  Json unknown = Json::object();
  for (const Field& one : fields) {
    object.set(one.name, one.value);
    if (!one.why.empty()) unknown.set(one.name, one.why);
  }
  object.set("unknown", std::move(unknown));
  return object;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return {};
  std::string text;
  if (value.is_array()) {
    for (const Json& item : value.items()) text += (text.empty() ? "" : "; ") + std::string(*item.as_string());
  } else if (const auto string = value.as_string()) {
    text = *string;
  } else {
    return value.dump(0);
  }
  text = printable(text);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  return fmt::format("{}\n", fmt::join(cells, ","));
}

std::string iso_time(device::UnixTime time) {
  const std::int64_t seconds = floor_seconds(time);
  const std::int64_t milliseconds = (time.nanoseconds - seconds * 1'000'000'000) / 1'000'000;
  return formatted(utc(seconds), "%Y-%m-%dT%H:%M:%S") + fmt::format(".{:03}Z", milliseconds);
}

std::string local_time(device::UnixTime time) {
  const std::time_t seconds = floor_seconds(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return formatted(parts, "%a %Y-%m-%d %H:%M:%S");
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::floor(std::max(seconds, 0.0)));
  const std::int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60, rest = whole % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  if (minutes > 0) return fmt::format("{}:{:02}", minutes, rest);
  return fmt::format("{}s", rest);
}

Cell unknown_cell() {
  return {"n/a", Tone::dim};
}

Cell percent_cell(const Reading<Ratio>& ratio) {
  if (!ratio) return unknown_cell();
  return fmt::format("{:.0f}%", ratio->value * 100);
}

Cell count_cell(const Reading<std::int64_t>& count) {
  if (!count) return unknown_cell();
  return fmt::format("{}", *count);
}

Cell celsius_cell(const Reading<Celsius>& temperature) {
  if (!temperature) return unknown_cell();
  return fmt::format("{:.0f}C", temperature->value);
}

std::string gib_text(Bytes bytes) {
  return fmt::format("{:.1f}", bytes.gib());
}

std::string memory_text(Bytes bytes) {
  if (bytes.count < (std::int64_t{1} << 30)) return fmt::format("{:.0f} MiB", bytes.mib());
  return fmt::format("{:.1f} GiB", bytes.gib());
}

}  // namespace gpuwright::cli
