// How a set is found (used by setup.cpp alone).
//
// Python is tried from the likeliest version on; for each, every framework that is wanted takes its newest release that
// goes with the GPUs, the Python, the driver and the toolkit that are asked for. The first Python with which all of
// them find one is taken. When none does, the reason is that of the try that came furthest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/setup/setup.h"

namespace gpuwright::doctor {

inline constexpr int kOpenByDefault = 560;  // the first branch for which open kernel modules are recommended

class Solver {
 public:
  Solver(const catalog::Compat& compat, const SetupTables& tables, const SetupWish& wish);

  tl::expected<SetupSet, Words> solve();

 private:
  using Capability = std::string;
  bool refuse(int stage, std::string_view reason, const Names& names);  // always false
  const catalog::Accelerator& gpu() const { return *wish_.gpus.front(); }
  const Words& word(std::string_view name) const { return tables_.words.find(name)->second; }

  bool take_vendor();
  bool take_architectures();
  bool take_modules();
  bool driver_that_stays_serves();
  tl::expected<SetupSet, Words> solve_nvidia();
  tl::expected<SetupSet, Words> solve_other();
  std::vector<std::string> pythons() const;
  // That one of many tries had the wrong Python is the least of reasons, unless it was asked for.
  int python_stage() const { return wish_.python ? 4 : 0; }

  bool take_frameworks(const std::string& python);
  bool take_torch(const std::string& python);
  bool take_torch_release(const catalog::TorchRelease& release, const std::string& python);
  bool has_code(const catalog::TorchRelease& release, const std::vector<const catalog::TorchBuild*>& builds);
  bool take_tensorflow(const std::string& python);
  bool take_jax(const std::string& python);
  // Of the CUDA that the set needs.
  bool take_driver(const std::string& cuda);
  bool choose_driver(const std::string& floor);
  void raise_floor(const std::string& floor);
  bool take_toolkit(const std::string& cuda);  // "": the newest that suits
  bool toolkit_suits(const std::string& minor, int stage);
  bool take_compiler(const std::string& minor);
  bool take_rocm(const std::string& python);
  bool take_xpu(const std::string& python);
  std::string known_torch() const;
  void take_image();
  void take_notes();
  bool python_suits(const std::string& python, const std::string& low, const std::string& high) const;

  const catalog::Compat& compat_;
  const SetupTables& tables_;
  const SetupWish& wish_;
  const SetupDistribution* distribution_ = nullptr;
  std::vector<const catalog::ArchitectureWindow*> windows_;  // of the GPUs, in their order
  SetupSet set_;
  int furthest_ = -1;
  Words reason_;
};

}  // namespace gpuwright::doctor
