#include "doctor/python/torch_build.h"

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

// The value of "name = 'x'" or "name: Optional[str] = 'x'"; nothing for None.
std::optional<std::string> string_of(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view value = trim(line.substr(equals + 1));
  if (value.size() < 2 || (value.front() != '\'' && value.front() != '"')) return std::nullopt;
  const std::size_t end = value.find(value.front(), 1);
  if (end == std::string_view::npos || end == 1 || end > 128) return std::nullopt;
  return std::string(value.substr(1, end - 1));
}

bool assigns(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || line.size() == name.size()) return false;
  const char next = line[name.size()];
  return next == ' ' || next == ':' || next == '=';
}

}  // namespace

std::optional<TorchBuild> parse_torch_version(std::string_view text) {
  TorchBuild build;
  for (const std::string_view line : split(text, '\n')) {
    if (assigns(line, "__version__")) build.version = string_of(line).value_or("");
    if (assigns(line, "cuda")) build.cuda = string_of(line);
    if (assigns(line, "hip")) build.hip = string_of(line);
    if (assigns(line, "xpu")) build.xpu = string_of(line);
  }
  return build.version.empty() ? std::nullopt : std::optional(std::move(build));
}

std::optional<TorchBuild> read_torch(const Host& host, const PythonEnvironment& environment) {
  const auto folder = environment.module_folder(host, "torch");
  if (!folder) return std::nullopt;
  const std::string text = host.text(*folder + "/version.py").value_or("");
  auto build = parse_torch_version(text);
  if (build) build->folder = *folder;
  return build;
}

}  // namespace gpuwright::doctor
