// Which commands of data/checks*.toml a host takes.
#pragma once

#include "doctor/host.h"
#include "doctor/texts.h"

namespace gpuwright::doctor {

// By /etc/os-release, the nearest first: {"ubuntu", "apt", "any"}. A distribution that is not known takes "any" alone.
Dialects dialects_of(const Host& host);

}  // namespace gpuwright::doctor
