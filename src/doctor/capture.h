// What the drivers told, kept in a host's gpuwright-host.json: "gpus", a list of objects with the readings' names of
// device/fields.h, and "sources", what became of each vendor's library.
#pragma once

#include <optional>

#include "base/json.h"
#include "device/snapshot.h"
#include "doctor/host.h"

namespace gpuwright::doctor {

// Nothing where the host has neither "gpus" nor "sources": then the drivers were not asked.
Result<std::optional<device::Snapshot>> captured_snapshot(const Host& host);
// Sets "gpus", "sources" and "drivers" of a host file. Serial numbers and processes are left out.
void capture(const device::Snapshot& snapshot, Json& host_file);

}  // namespace gpuwright::doctor
