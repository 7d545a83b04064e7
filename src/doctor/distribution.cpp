#include "doctor/distribution.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "catalog/compat.h"

namespace gpuwright::doctor {
namespace {

// The value of a key as a shell would read it, but for escapes, which these files do not need.
std::string field(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') continue;
    std::string_view value = trim(line.substr(key.size() + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return {};
}

using Names = std::pair<std::string_view, std::string_view>;
constexpr std::array kUbuntuCodenames = {Names{"bionic", "18.04"}, Names{"focal", "20.04"}, Names{"jammy", "22.04"},
                                         Names{"noble", "24.04"}, Names{"resolute", "26.04"}};
constexpr std::array kDebianCodenames = {Names{"buster", "10"}, Names{"bullseye", "11"}, Names{"bookworm", "12"},
                                         Names{"trixie", "13"}, Names{"forky", "14"}};

template <std::size_t size>
std::string version_of(const std::array<Names, size>& names, std::string_view codename) {
  for (const auto& [name, version] : names)
    if (name == codename) return std::string(version);
  return {};
}

bool names(std::string_view like, std::string_view id) {
  for (const std::string_view word : split(like, ' '))
    if (word == id) return true;
  return false;
}

Family family_of(std::string_view id, std::string_view like) {
  const auto is = [&](std::string_view name) { return id == name || names(like, name); };
  if (is("ubuntu")) return Family::ubuntu;
  if (is("debian")) return Family::debian;
  if (id == "fedora") return Family::fedora;
  if (is("rhel") || is("centos") || id == "amzn") return Family::rhel;
  if (is("fedora")) return Family::fedora;
  if (is("suse") || is("opensuse") || id.starts_with("opensuse") || id == "sles" || id == "sled") return Family::suse;
  if (is("arch")) return Family::arch;
  return Family::unknown;
}

void find_base(std::string_view text, Distribution& distribution) {
  const std::string codename = lower(field(text, "VERSION_CODENAME"));
  switch (distribution.family) {
    case Family::ubuntu:
      distribution.base_id = "ubuntu";
      distribution.base_version = distribution.id == "ubuntu" || distribution.id == "pop"
                                      ? distribution.version
                                      : version_of(kUbuntuCodenames, lower(field(text, "UBUNTU_CODENAME")));
      break;
    case Family::debian:
      distribution.base_id = "debian";
      distribution.base_version = distribution.id == "debian"
                                      ? distribution.version
                                      : version_of(kDebianCodenames, lower(field(text, "DEBIAN_CODENAME")));
      if (distribution.base_version.empty()) distribution.base_version = version_of(kDebianCodenames, codename);
      break;
    case Family::rhel:
      // Amazon Linux 2023 numbers itself by year; its packages are its own.
      distribution.base_id = distribution.id == "amzn" ? "amzn" : "rhel";
      distribution.base_version = catalog::version_prefix(distribution.version, 1);
      break;
    case Family::fedora:
      distribution.base_id = "fedora";
      if (distribution.id == "fedora") distribution.base_version = distribution.version;
      break;
    case Family::suse:
      distribution.base_id = "suse";
      if (distribution.id != "opensuse-tumbleweed")
        distribution.base_version = catalog::version_prefix(distribution.version, 1);
      break;
    case Family::arch:
      distribution.base_id = "arch";
      break;
    case Family::unknown:
      distribution.base_id = distribution.id;
      distribution.base_version = distribution.version;
      break;
  }
}

}  // namespace

Distribution distribution_from_os_release(std::string_view text) {
  Distribution distribution;
  distribution.id = lower(field(text, "ID"));
  distribution.version = field(text, "VERSION_ID");
  distribution.name = field(text, "PRETTY_NAME");
  if (distribution.name.empty()) distribution.name = distribution.id;
  distribution.family = family_of(distribution.id, lower(field(text, "ID_LIKE")));
  find_base(text, distribution);
  return distribution;
}

std::optional<Distribution> read_distribution(const Host& host) {
  auto text = host.text("/etc/os-release");
  if (!text) text = host.text("/usr/lib/os-release");
  if (!text) return std::nullopt;
  return distribution_from_os_release(*text);
}

std::vector<std::string> dialects_of(const Distribution& distribution) {
  switch (distribution.family) {
    case Family::ubuntu:
      return {"ubuntu", "apt", "any"};
    case Family::debian:
      return {"debian", "apt", "any"};
    case Family::rhel:
      return {"rhel", "dnf", "any"};
    case Family::fedora:
      return {"fedora", "dnf", "any"};
    case Family::suse:
      return {"suse", "any"};
    case Family::arch:
      return {"arch", "any"};
    case Family::unknown:
      break;
  }
  return {"any"};
}

}  // namespace gpuwright::doctor
