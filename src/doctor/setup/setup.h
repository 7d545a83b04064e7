// From a bare machine to a working one: which driver, kernel modules, toolkit, framework build, Python and image go
// together for these GPUs on this distribution, and the steps to get there. Asks data/compat.toml and data/setup.toml;
// touches nothing. What cannot be is refused with the smallest change that makes it possible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rules/words.h"
#include "catalog/accelerator.h"
#include "catalog/compat.h"
#include "doctor/setup/tables.h"

namespace gpuwright::doctor {

// What somebody wants. Absent: free to be chosen.
struct SetupWish {
  std::vector<const catalog::Accelerator*> gpus;  // at least one
  std::string distribution;                       // an id of SetupTables::distributions
  bool aarch64 = false;
  bool wsl = false;
  std::optional<std::string> driver;          // has to stay: "535.104.05", or a branch, "535"
  std::optional<std::string> present_driver;  // stays where it is good enough
  bool wants_torch = true;
  std::optional<std::string> torch;  // "2.7", "2.7.1"
  bool wants_tensorflow = false;
  std::optional<std::string> tensorflow;
  bool wants_jax = false;
  std::optional<std::string> cuda;  // "12.8": of the framework's build and of the toolkit
  std::optional<std::string> python;
  bool toolkit = false;    // nvcc
  bool container = false;  // frameworks live in an image
  std::string today = "2026-12";
};

struct DriverChoice {
  int branch = 0;
  bool open = true;
  std::string floor;  // the oldest version that will do
  bool keeps = false;
  std::string version;  // of the one that stays
  Words why;
};

// Rows point into the tables.
struct SetupSet {
  std::string vendor;
  const SetupDistribution* distribution = nullptr;
  std::optional<DriverChoice> driver;  // NVIDIA
  std::string python;
  bool python_of_distribution = false;
  const catalog::TorchRelease* torch = nullptr;
  const catalog::TorchBuild* build = nullptr;  // NVIDIA
  std::string tag;                             // "cu128", "rocm7.1", "xpu"
  const catalog::TensorflowRelease* tensorflow = nullptr;
  const catalog::JaxExtra* jax = nullptr;
  std::optional<std::string> toolkit;  // "12.8"
  std::optional<int> gcc;              // for nvcc, where the distribution's own is too new
  std::string image;                   // of a container
  std::string cuda;                    // that the frameworks, else the toolkit or image, run on; empty: AMD, Intel
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<Words> notes;
};

struct SetupChange {
  std::vector<std::pair<std::string, std::string>> values;  // {"torch", "2.7"}, as options name them
  Words text;
  SetupSet set;  // what would come of it
};

struct SetupRefusal {
  Words reason;
  std::vector<SetupChange> changes;  // each alone is enough; empty: no change of wishes helps, only other hardware
};

struct SetupAction {
  std::string id;
  Words title, why;
  std::vector<std::string> commands;
  std::vector<std::string> packages;  // of the distribution's archive, as `repository` says
  std::string repository;
  bool reboot = false;
};

class Setup {
 public:
  // The tables have to outlive it and what it answers.
  Setup(const catalog::Compat& compat, const SetupTables& tables) : compat_(compat), tables_(tables) {}

  tl::expected<SetupSet, Words> solve(const SetupWish& wish) const;
  // For a wish that solve() refused.
  SetupRefusal refusal(const SetupWish& wish) const;
  std::vector<SetupAction> actions(const SetupWish& wish, const SetupSet& set) const;
  std::vector<const OldRecipe*> old_recipes(const SetupWish& wish) const;
  // The actions as one bash script that may be run again: it goes on after the restart that the driver needs.
  std::string script(const SetupWish& wish, const SetupSet& set, std::string_view language) const;

 private:
  const catalog::Compat& compat_;
  const SetupTables& tables_;
};

}  // namespace gpuwright::doctor
