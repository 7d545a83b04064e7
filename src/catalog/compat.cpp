#include "catalog/compat.h"

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "catalog/fields.h"

namespace gpuwright::catalog {
namespace {

// Chips beside a Tegra's CPU: code is not exchanged with the desktop's GPUs of the same major.
bool is_tegra(std::string_view capability) {
  return capability == "5.3" || capability == "6.2" || capability == "7.2" || capability == "8.7" ||
         capability == "11.0";
}

template <class Row, class Field>
const Row* find_row(const std::vector<Row>& rows, Field Row::*field, std::string_view key) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.*field == key; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::string> cuda_of_tag(std::string_view tag) {
  if (!tag.starts_with("cu")) return std::nullopt;
  const std::string_view digits = tag.substr(2);
  if (digits.size() < 2 || digits.size() > 3 || !to_integer(digits)) return std::nullopt;
  return std::string(digits.substr(0, digits.size() - 1)) + "." + digits.back();
}

std::string version_prefix(std::string_view version, int parts) {
  version = version.substr(0, version.find_first_of("+- "));
  std::size_t end = 0;
  for (int i = 0; i < parts; ++i) {
    end = version.find('.', i == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return std::string(version);
  }
  return std::string(version.substr(0, end));
}

bool cubin_runs_on(std::string_view code, std::string_view gpu) {
  if (code == gpu) return true;
  const auto made_for = parse_version(code), runs_on = parse_version(gpu);
  if (!made_for || !runs_on || is_tegra(gpu) || is_tegra(code)) return false;
  return made_for->major == runs_on->major && made_for->minor <= runs_on->minor;
}

const TorchBuild* TorchRelease::build(std::string_view tag) const {
  return find_row(builds, &TorchBuild::tag, tag);
}

const CudaRelease* Compat::cuda_release(std::string_view version) const {
  const CudaRelease* found = nullptr;
  for (const CudaRelease& release : cuda)
    if (release.version == version || version_prefix(release.version, 2) == version) found = &release;
  return found;
}

std::optional<std::string> Compat::driver_floor(std::string_view version) const {
  const auto major = to_integer(version_prefix(version, 1));
  for (const CudaMajor& row : cuda_majors)
    if (major && row.major == *major) return row.driver;
  // Before CUDA 11 each release needs the driver that it was made with.
  const CudaRelease* release = cuda_release(version);
  return release != nullptr ? std::optional(release->driver) : std::nullopt;
}

const DriverBranch* Compat::branch_of(std::string_view driver) const {
  const auto number = to_integer(version_prefix(driver, 1));
  for (const DriverBranch& row : branches)
    if (number && row.branch == *number) return &row;
  return nullptr;
}

std::optional<std::string> Compat::newest_cuda_of(std::string_view driver) const {
  std::optional<std::string> newest;
  for (const CudaRelease& release : cuda)
    if (compare_versions(release.driver, driver) <= 0) newest = version_prefix(release.version, 2);
  return newest;
}

const ArchitectureWindow* Compat::architecture(std::string_view capability) const {
  return find_row(architectures, &ArchitectureWindow::capability, capability);
}

std::optional<bool> Compat::serves(int branch, std::string_view capability) const {
  const ArchitectureWindow* window = architecture(capability);
  if (window == nullptr || !window->first_driver) return std::nullopt;
  return branch >= *window->first_driver && (!window->last_driver || branch <= *window->last_driver);
}

std::optional<int> Compat::newest_gcc(std::string_view version) const {
  const HostCompiler* row = find_row(compilers, &HostCompiler::cuda, version_prefix(version, 2));
  return row != nullptr ? std::optional(row->gcc) : std::nullopt;
}

const TorchRelease* Compat::torch_release(std::string_view version) const {
  return find_row(torch, &TorchRelease::version, version_prefix(version, 2));
}

const TensorflowRelease* Compat::tensorflow_release(std::string_view version) const {
  return find_row(tensorflow, &TensorflowRelease::version, version_prefix(version, 2));
}

const AmdTarget* Compat::amd_target(std::string_view gfx) const {
  return find_row(amd, &AmdTarget::gfx, gfx);
}

const ContainerNeeds* Compat::container(std::string_view vendor) const {
  return find_row(containers, &ContainerNeeds::vendor, vendor);
}

std::optional<bool> Compat::runs_on(const TorchBuild& build, std::string_view capability, bool aarch64) const {
  if (aarch64 && build.arm_archs.empty()) return std::nullopt;
  const std::vector<std::string>& codes = aarch64 ? build.arm_archs : build.archs;
  if (std::any_of(codes.begin(), codes.end(), [&](const std::string& code) { return cubin_runs_on(code, capability); }))
    return true;
  return build.ptx && compare_versions(*build.ptx, capability) <= 0;
}

}  // namespace gpuwright::catalog
