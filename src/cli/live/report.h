// `report` for people and programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "device/report.h"

namespace gpuwright::cli {

void print_report(const device::Report& report, const Console& console);
Json report_json(const device::Report& report, const std::vector<std::string>& damage);

}  // namespace gpuwright::cli
