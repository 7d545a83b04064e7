#include "base/finding.h"

#include <array>

namespace gpuwright {
namespace {

constexpr std::array<std::string_view, 6> kScopes = {"none", "gpu", "driver", "software", "host", "cluster"};
constexpr std::array<std::string_view, 4> kSeverities = {"benign", "info", "warning", "fatal"};

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Scope scope) {
  return kScopes[static_cast<std::size_t>(scope)];
}
std::string_view to_string(Severity severity) {
  return kSeverities[static_cast<std::size_t>(severity)];
}
std::optional<Scope> scope_named(std::string_view name) {
  return named<Scope>(kScopes, name);
}
std::optional<Severity> severity_named(std::string_view name) {
  return named<Severity>(kSeverities, name);
}

}  // namespace gpuwright
