// What doctor found, for people and as gpuwright.doctor/1.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "doctor/doctor.h"

namespace gpuwright::cli {

// What kind of machine this is, in one line: distribution, kernel, GPUs, driver, container.
std::string machine_line(const doctor::Machine& machine);

// everything: also the checks that found nothing, each with what it saw.
void print_diagnosis(const doctor::Machine& machine, const doctor::Diagnosis& diagnosis, bool everything,
                     const Console& console);
Json to_json(const doctor::Machine& machine, const doctor::Diagnosis& diagnosis);

}  // namespace gpuwright::cli
