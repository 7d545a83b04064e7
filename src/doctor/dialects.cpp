#include "doctor/dialects.h"

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

// Values of os-release may be quoted.
std::string field(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') continue;
    std::string_view value = trim(line.substr(key.size() + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'')) value = value.substr(1, value.size() - 2);
    return lower(value);
  }
  return {};
}

}  // namespace

Dialects dialects_of(const Host& host) {
  auto text = host.text("/etc/os-release");
  if (!text) text = host.text("/usr/lib/os-release");
  const std::string id = text ? field(*text, "ID") : "";
  const std::string like = text ? " " + field(*text, "ID_LIKE") + " " : "";
  const auto is = [&](std::string_view name) {
    return id == name || like.find(" " + std::string(name) + " ") != std::string::npos;
  };
  if (is("ubuntu")) return {"ubuntu", "apt", "any"};
  if (is("debian")) return {"debian", "apt", "any"};
  if (id == "fedora") return {"fedora", "dnf", "any"};
  if (is("rhel") || is("centos")) return {"rhel", "dnf", "any"};
  if (is("fedora")) return {"fedora", "dnf", "any"};
  if (is("suse") || is("opensuse") || id.starts_with("opensuse") || id == "sles") return {"suse", "any"};
  if (is("arch")) return {"arch", "any"};
  return {"any"};
}

}  // namespace gpuwright::doctor
