// AMD, Intel, images and notes.
#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "doctor/setup/solver.h"

namespace gpuwright::doctor {
namespace {

// PyTorch 2.5 release notes: Intel GPUs in the binaries from 2.5 on (torch.xpu), by the index xpu.
constexpr std::string_view kFirstXpu = "2.5";

}  // namespace

tl::expected<SetupSet, Words> Solver::solve_other() {
  const auto nvidia_only = [this](bool asked, std::string_view what) {
    return !asked ||
           refuse(1, "other_vendor_only", {{"what", std::string(what)}, {"gpu", gpu().name}, {"vendor", gpu().vendor}});
  };
  if (!nvidia_only(wish_.driver.has_value(), "--driver") || !nvidia_only(wish_.cuda.has_value(), "CUDA") ||
      !nvidia_only(wish_.toolkit, "--toolkit") || !nvidia_only(wish_.wants_tensorflow, "tensorflow[and-cuda]") ||
      !nvidia_only(wish_.wants_jax, "jax[cuda]"))
    return tl::unexpected(reason_);
  const SetupSet begin = set_;
  for (const std::string& python : pythons()) {
    set_ = begin;
    if (wish_.wants_torch && !(set_.vendor == "AMD" ? take_rocm(python) : take_xpu(python))) continue;
    set_.python = python;
    set_.python_of_distribution = std::count(distribution_->pythons.begin(), distribution_->pythons.end(), python) > 0;
    if (wish_.container)
      set_.image = set_.vendor == "AMD" ? "rocm/pytorch:latest" : "intel/intel-extension-for-pytorch:latest";
    take_notes();
    return set_;
  }
  return tl::unexpected(reason_);
}

bool Solver::take_rocm(const std::string& python) {
  const auto suits = [&](const catalog::TorchRelease& release) {
    if (!release.rocm) return refuse(2, "rocm_none", {{"torch", release.version}});
    for (const catalog::Accelerator* one : wish_.gpus) {
      const catalog::AmdTarget* target =
          one->compute_capability ? compat_.amd_target(*one->compute_capability) : nullptr;
      const bool code = target != nullptr && target->rocm && compare_versions(*release.rocm, *target->rocm) >= 0;
      if (!code && (target == nullptr || !target->override_version))
        return refuse(
            3, "rocm_code",
            {{"torch", release.version}, {"capability", one->compute_capability.value_or("?")}, {"gpu", one->name}});
      if (!code) {
        set_.variables = {{"HSA_OVERRIDE_GFX_VERSION", *target->override_version}};
        set_.notes.push_back(
            filled_in(word("rocm_override"), {{"gpu", one->name}, {"capability", *one->compute_capability}}));
      }
    }
    if (!python_suits(python, release.oldest_python, release.newest_python))
      return refuse(python_stage(), "torch_python",
                    {{"torch", release.version},
                     {"low", release.oldest_python},
                     {"high", release.newest_python},
                     {"python", python}});
    set_.torch = &release;
    set_.tag = "rocm" + *release.rocm;
    return true;
  };
  if (!wish_.torch) return std::any_of(compat_.torch.rbegin(), compat_.torch.rend(), suits);
  const catalog::TorchRelease* release = compat_.torch_release(*wish_.torch);
  if (release == nullptr) return refuse(2, "torch_unknown", {{"torch", *wish_.torch}, {"known", known_torch()}});
  return suits(*release);
}

bool Solver::take_xpu(const std::string& python) {
  const auto suits = [&](const catalog::TorchRelease& release) {
    if (compare_versions(release.version, kFirstXpu) < 0)
      return refuse(2, "xpu_none", {{"torch", release.version}, {"first", std::string(kFirstXpu)}});
    if (!python_suits(python, release.oldest_python, release.newest_python))
      return refuse(python_stage(), "torch_python",
                    {{"torch", release.version},
                     {"low", release.oldest_python},
                     {"high", release.newest_python},
                     {"python", python}});
    set_.torch = &release;
    set_.tag = "xpu";
    return true;
  };
  if (!wish_.torch) return std::any_of(compat_.torch.rbegin(), compat_.torch.rend(), suits);
  const catalog::TorchRelease* release = compat_.torch_release(*wish_.torch);
  if (release == nullptr) return refuse(2, "torch_unknown", {{"torch", *wish_.torch}, {"known", known_torch()}});
  return suits(*release);
}

std::string Solver::known_torch() const {
  std::string known;
  for (const catalog::TorchRelease& release : compat_.torch) known += (known.empty() ? "" : ", ") + release.version;
  return known;
}

void Solver::take_image() {
  if (!wish_.container) return;
  if (set_.build != nullptr) {
    set_.image = fmt::format("pytorch/pytorch:{}-cuda{}-cudnn{}-{}", set_.torch->newest, set_.build->cuda,
                             catalog::version_prefix(set_.build->cudnn, 1), wish_.toolkit ? "devel" : "runtime");
  } else if (set_.tensorflow != nullptr) {
    set_.image = fmt::format("tensorflow/tensorflow:{}-gpu", set_.tensorflow->newest);
  } else if (set_.jax != nullptr) {
    set_.image = "ghcr.io/nvidia/jax:jax";
  } else if (const auto* release = compat_.cuda_release(set_.cuda)) {
    set_.image = fmt::format("nvidia/cuda:{}-devel-{}", release->version, distribution_->image);
  }
}

void Solver::take_notes() {
  if (set_.build != nullptr) {
    if (set_.build->experimental) set_.notes.push_back(filled_in(word("torch_experimental"), {{"tag", set_.tag}}));
    const std::vector<std::string>& codes = wish_.aarch64 ? set_.build->arm_archs : set_.build->archs;
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const std::string& capability = windows_[i]->capability;
      const auto code = std::find_if(codes.rbegin(), codes.rend(),
                                     [&](const std::string& one) { return catalog::cubin_runs_on(one, capability); });
      if (code == codes.rend())
        set_.notes.push_back(filled_in(word("ptx"), {{"what", "PyTorch " + set_.tag}, {"gpu", wish_.gpus[i]->name}}));
    }
  }
  if (set_.tensorflow != nullptr)
    for (std::size_t i = 0; i < windows_.size(); ++i)
      if (std::none_of(set_.tensorflow->archs.begin(), set_.tensorflow->archs.end(),
                       [&](const std::string& one) { return catalog::cubin_runs_on(one, windows_[i]->capability); }))
        set_.notes.push_back(
            filled_in(word("ptx"), {{"what", "TensorFlow " + set_.tensorflow->version}, {"gpu", wish_.gpus[i]->name}}));
  if (set_.driver && !set_.driver->keeps && !wish_.wsl) set_.notes.push_back(word("secure_boot"));
  std::string unverified;
  const auto mention = [&unverified](bool verified, const std::string& what) {
    if (!verified) unverified += (unverified.empty() ? "" : ", ") + what;
  };
  mention(distribution_->verified, distribution_->name);
  if (set_.torch != nullptr) mention(set_.torch->verified, "PyTorch " + set_.torch->version);
  if (set_.build != nullptr) mention(set_.build->verified, set_.build->tag);
  if (set_.tensorflow != nullptr) mention(set_.tensorflow->verified, "TensorFlow " + set_.tensorflow->version);
  if (set_.jax != nullptr) mention(set_.jax->verified, "jax[" + set_.jax->extra + "]");
  if (!unverified.empty()) set_.notes.push_back(filled_in(word("unverified"), {{"what", unverified}}));
}

}  // namespace gpuwright::doctor
