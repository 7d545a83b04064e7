// Metadata of Python packages from anybody: names come out normalised, and what is read can be asked for.
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "doctor/python/package.h"
#include "doctor/python/torch_build.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright::doctor;  // NOLINT: a fuzz target of one file
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Requirement& requirement : requirements_in(text)) {
    if (requirement.name.empty() || normalised_name(requirement.name) != requirement.name) std::abort();
    (void)requirement.pin();
    (void)meets("2.7.0+cu126", requirement.specifier);
  }
  for (const std::string_view line : gpuwright::split(text, '\n')) {
    const auto package = package_named("/site", line);
    if (package && (package->name.empty() || package->version.empty())) std::abort();
    (void)meets(line, ">=1.2,!=1.3,<2");
    (void)minor_version(line);
  }
  const auto torch = parse_torch_version(text);
  if (torch && torch->version.empty()) std::abort();
  return 0;
}
