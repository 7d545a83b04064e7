// How the values of a Snapshot look: as JSON, in a CSV cell, to people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/table.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

// One named value of a GPU, a process or a MIG instance. `why` says why the value is null.
struct Field {
  std::string name;
  Json value;
  std::string why;
};

// Everything that is known of it, in the order of columns: first what is always known, then the readings of
// device/fields.h.
std::vector<Field> fields_of(const device::Snapshot& snapshot, const device::Gpu& gpu);
std::vector<Field> fields_of(const device::Process& process);
std::vector<Field> fields_of(const device::MigInstance& instance);
std::vector<std::string> gpu_field_names();
std::vector<std::string> process_field_names();

// An object of the fields; those without a value are null, and "unknown" says why.
Json object_of(const std::vector<Field>& fields);
// A value in a CSV line: numbers as JSON has them, lists joined by "; ", quoted where CSV asks for it.
std::string csv_cell(const Json& value);
std::string csv_line(const std::vector<std::string>& cells);

std::string iso_time(device::UnixTime time);    // "2026-11-30T21:14:53.120Z"
std::string local_time(device::UnixTime time);  // "Mon 2026-11-30 21:14:53"
std::string duration_text(double seconds);      // "42s", "3:07", "2:14:59", "3d 04:00"

// For cells of tables: "n/a" in a pale tone where the value is unknown.
Cell percent_cell(const device::Reading<Ratio>& ratio);
Cell count_cell(const device::Reading<std::int64_t>& count);
Cell celsius_cell(const device::Reading<Celsius>& temperature);
std::string gib_text(Bytes bytes);     // "70.1": GiB, one decimal
std::string memory_text(Bytes bytes);  // "70.1 GiB", "512 MiB"
Cell unknown_cell();

}  // namespace gpuwright::cli
