// Prints what gpuwright reads of Python environments, for python_oracle.py. Without words: "environment PREFIX
// VERSION", then "SITE NAME VERSION" of each package. With pairs of words VERSION SPECIFIER: "yes", "no" or "unknown"
// for each.
#include <fmt/format.h>

#include "doctor/python/environment.h"

int main(int count, char** words) {
  using namespace gpuwright::doctor;  // NOLINT: a program of one file
  for (int i = 1; i + 1 < count; i += 2) {
    const auto answer = meets(words[i], words[i + 1]);
    fmt::print("{}\n", !answer ? "unknown" : *answer ? "yes" : "no");
  }
  if (count > 1) return 0;
  const auto host = Host::open("/");
  if (!host) return 1;
  for (const PythonEnvironment& environment : python_environments(*host)) {
    fmt::print("environment {} {} {}\n", environment.prefix, environment.version, environment.active ? "active" : "-");
    for (const auto& [name, package] : environment.packages)
      fmt::print("{} {} {}\n", package.folder, name, package.version);
  }
  return 0;
}
