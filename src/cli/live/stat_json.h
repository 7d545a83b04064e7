// `stat` for programs: JSON of schema gpuwright.stat/1, and CSV, one line a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

// What every answer made from a snapshot opens with: schema, host, time, "simulated": the scenario or null.
Json snapshot_head(std::string_view schema, const device::Snapshot& snapshot);

// With `only`, the GPUs have just these fields (and their index), and processes are left out.
Json stat_json(const device::Snapshot& snapshot, const std::optional<std::vector<std::string>>& only = {});

// Columns: time, the fields, and `simulated` (the scenario) where the host is not a real one.
std::string stat_csv_header(const device::Snapshot& snapshot, const std::vector<std::string>& fields);
std::string stat_csv_lines(const device::Snapshot& snapshot, const std::vector<std::string>& fields);

// "index,power_watts" -> names; bad_input with the nearest name, or the name that nvidia-smi has for it.
Result<std::vector<std::string>> parse_fields(std::string_view text);
// The fields that GPUs have, one a line, as --fields help prints them.
std::string field_list();

// What has to be read for these fields; nothing: for all of them.
bool need_traffic(const std::optional<std::vector<std::string>>& fields);

}  // namespace gpuwright::cli
