// Which distribution a machine runs, by its os-release, and which one its packages come from: Linux Mint 22 takes
// those of Ubuntu 24.04, Rocky Linux 9 those of RHEL 9.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host.h"

namespace gpuwright::doctor {

enum class Family : std::uint8_t { unknown, debian, ubuntu, rhel, fedora, suse, arch };

struct Distribution {
  std::string id;       // as the file says: "linuxmint"
  std::string version;  // VERSION_ID: "22"; empty on rolling ones
  std::string name;     // PRETTY_NAME, not printable() yet
  Family family = Family::unknown;
  // Whose packages it takes: "ubuntu" and "24.04", "rhel" and "9". base_version is empty where unknown or rolling.
  std::string base_id, base_version;
  std::string base() const { return base_version.empty() ? base_id : base_id + "-" + base_version; }
};

Distribution distribution_from_os_release(std::string_view text);
// /etc/os-release, else /usr/lib/os-release; nothing where neither can be read.
std::optional<Distribution> read_distribution(const Host& host);

// Which commands it takes, from its own name to "any": {"ubuntu", "apt", "any"}.
std::vector<std::string> dialects_of(const Distribution& distribution);

}  // namespace gpuwright::doctor
