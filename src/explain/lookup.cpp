#include "explain/lookup.h"

#include <memory>

#include "catalog/compat.h"

namespace gpuwright::explain {
namespace {

using catalog::Compat;
using catalog::TorchBuild;
using catalog::TorchRelease;

bool has_code(const Compat& compat, const TorchBuild& build, std::string_view capability) {
  return compat.runs_on(build, capability, false).value_or(false);
}

// Of the newest release that is sure to have code for it, the build that asks least of the driver.
std::optional<std::string> torch_tag_for(const Compat& compat, std::string_view capability) {
  for (auto release = compat.torch.rbegin(); release != compat.torch.rend(); ++release)
    for (const TorchBuild& build : release->builds)
      if (release->verified && !build.experimental && has_code(compat, build, capability)) return build.tag;
  return std::nullopt;
}

std::optional<std::string> first_torch_for(const Compat& compat, std::string_view capability) {
  for (const TorchRelease& release : compat.torch)
    for (const TorchBuild& build : release.builds)
      if (has_code(compat, build, capability)) return release.version;
  return std::nullopt;
}

class Tables {
 public:
  explicit Tables(const catalog::Catalog& catalog) : catalog_(catalog) {}

  std::optional<std::string> answer(std::string_view question, std::string_view of) {
    if (question == "capability") {
      const auto gpu = catalog_.find(of);
      return gpu ? (*gpu)->compute_capability : std::nullopt;
    }
    if (!compat_) compat_ = Compat::load();
    if (!*compat_) return std::nullopt;
    const Compat& compat = **compat_;
    if (question == "driver_for") return compat.driver_floor(of);
    if (question == "torch_tag_for") return torch_tag_for(compat, of);
    if (question == "first_torch_for") return first_torch_for(compat, of);
    return std::nullopt;
  }

 private:
  const catalog::Catalog& catalog_;
  std::optional<Result<Compat>> compat_;
};

}  // namespace

std::function<std::optional<std::string>(std::string_view question, std::string_view of)> lookup_in(
    const catalog::Catalog& catalog) {
  return [tables = std::make_shared<Tables>(catalog)](std::string_view question, std::string_view of) {
    return tables->answer(question, of);
  };
}

}  // namespace gpuwright::explain
