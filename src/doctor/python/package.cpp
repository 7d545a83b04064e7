#include "doctor/python/package.h"

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostRequirements = 512;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool in_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

std::optional<bool> meets_one(std::string_view version, std::string_view clause) {
  clause = trim(clause);
  const std::size_t end = clause.find_first_not_of("<>=!~");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  const std::string_view how = clause.substr(0, end);
  std::string_view wanted = trim(clause.substr(end));
  const bool any_after = wanted.ends_with(".*");
  if (any_after) wanted.remove_suffix(2);
  if (wanted.empty() || !is_digit(wanted.front()) || version.empty() || !is_digit(version.front())) return std::nullopt;
  const bool begins =
      version == wanted || (version.starts_with(wanted) && version.substr(wanted.size()).front() == '.');
  const int order = compare_versions(version, wanted);
  if (how == "==" || how == "===")
    return any_after ? begins : order == 0 && (local_tag(wanted).empty() || local_tag(wanted) == local_tag(version));
  if (how == "!=") return any_after ? !begins : order != 0;
  if (how == ">=") return order >= 0;
  if (how == "<=") return order <= 0;
  if (how == ">") return order > 0;
  if (how == "<") return order < 0;
  if (how != "~=") return std::nullopt;
  const std::size_t dot = wanted.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view series = wanted.substr(0, dot);
  return order >= 0 && version.starts_with(series) &&
         (version.size() == series.size() || version[series.size()] == '.');
}

}  // namespace

std::string normalised_name(std::string_view name) {
  std::string result;
  for (const char c : lower(name)) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !result.empty() && result.back() == '-') continue;
    result.push_back(separator ? '-' : c);
  }
  return result;
}

std::optional<Package> package_named(const std::string& site, std::string_view entry) {
  std::string_view stem = entry;
  const bool egg = entry.ends_with(".egg-info");
  if (egg) {
    stem.remove_suffix(9);
  } else if (entry.ends_with(".dist-info")) {
    stem.remove_suffix(10);
  } else {
    return std::nullopt;
  }
  const std::size_t dash = stem.find('-');  // names have "_" in its place
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == stem.size()) return std::nullopt;
  std::string_view version = stem.substr(dash + 1);
  if (egg) version = version.substr(0, version.find("-py"));
  if (version.empty() || !is_digit(version.front())) return std::nullopt;
  return Package{normalised_name(stem.substr(0, dash)), std::string(version), site + "/" + std::string(entry)};
}

std::optional<std::string> Requirement::pin() const {
  if (!specifier.starts_with("==") || specifier.starts_with("===") || specifier.ends_with("*")) return std::nullopt;
  if (specifier.find(',') != std::string::npos) return std::nullopt;
  return std::string(trim(std::string_view(specifier).substr(2)));
}

// "nvidia-cudnn-cu12==9.5.1.17 ; platform_system == 'Linux'", "torch (>=1.13)", "fsspec[http]>=2021", "x @ file:///y"
std::optional<Requirement> parse_requirement(std::string_view text) {
  text = trim(text);
  const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), in_name) - text.begin());
  if (end == 0) return std::nullopt;
  Requirement requirement;
  requirement.name = normalised_name(text.substr(0, end));
  text = trim(text.substr(end));
  if (text.starts_with('[')) text = trim(text.substr(std::min(text.find(']'), text.size() - 1) + 1));
  const std::size_t marker = text.find(';');
  if (marker != std::string_view::npos) {
    requirement.marker = trim(text.substr(marker + 1));
    requirement.optional = requirement.marker.find("extra") != std::string::npos;
    text = trim(text.substr(0, marker));
  }
  if (text.starts_with('@')) text = {};
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  for (const char c : text)
    if (c != ' ') requirement.specifier.push_back(c);
  return requirement;
}

std::vector<Requirement> requirements_in(std::string_view metadata) {
  std::vector<Requirement> requirements;
  for (const std::string_view line : split(metadata, '\n')) {
    if (trim(line).empty()) break;
    if (!starts_with_ignoring_case(line, "Requires-Dist:")) continue;
    if (auto requirement = parse_requirement(line.substr(14))) requirements.push_back(std::move(*requirement));
    if (requirements.size() == kMostRequirements) break;
  }
  return requirements;
}

std::string_view local_tag(std::string_view version) {
  const std::size_t plus = version.find('+');
  return plus == std::string_view::npos ? std::string_view{} : version.substr(plus + 1);
}

std::string_view public_version(std::string_view version) {
  return version.substr(0, version.find('+'));
}

std::string_view minor_version(std::string_view version) {
  version = public_version(version);
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return version;
  const std::size_t end = version.find_first_not_of("0123456789", dot + 1);
  return version.substr(0, end);
}

std::optional<bool> meets(std::string_view version, std::string_view specifier) {
  if (trim(specifier).empty()) return true;
  bool all = true;
  for (const std::string_view clause : split(specifier, ',')) {
    const auto one = meets_one(version, clause);
    if (!one) return std::nullopt;
    all = all && *one;
  }
  return all;
}

}  // namespace gpuwright::doctor
