// The Python environments of a machine, read and never run: virtual environments, conda's, the distribution's, those of
// containers, and what a user installed for himself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host.h"
#include "doctor/python/package.h"

namespace gpuwright::doctor {

struct PythonEnvironment {
  enum class Kind : std::uint8_t { system, virtual_environment, conda, other };

  Kind kind = Kind::other;
  std::string prefix;              // "/usr", "/home/ada/venv"
  std::string version;             // "3.11"
  std::vector<std::string> sites;  // folders of packages, in the order in which Python looks
  bool active = false;             // what `python3` is in the environment that doctor was asked in
  std::map<std::string, Package, std::less<>> packages;  // by normalised name; the first of a name counts

  const Package* find(std::string_view name) const;
  // The folder of an importable package ("torch") in the first site that has it.
  std::optional<std::string> module_folder(const Host& host, std::string_view name) const;
  // `prefix`/bin/python3 or /python: to be typed in a fix.
  std::string python() const;
};
std::string_view to_string(PythonEnvironment::Kind kind);  // "virtual environment"

// The active one first, each once, at most 48; those that hold no packages are left out.
std::vector<PythonEnvironment> python_environments(const Host& host);

// Those that a problem of today can come from: the active one where it has the package, else all that have it.
std::vector<const PythonEnvironment*> environments_with(const std::vector<PythonEnvironment>& all,
                                                        std::string_view package);

}  // namespace gpuwright::doctor
