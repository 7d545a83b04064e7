// data/setup.toml as plain structs: distributions, steps with their commands, what old recipes got wrong, texts and the
// programs that check a finished machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rules/words.h"

namespace gpuwright::doctor {

using Names = std::map<std::string, std::string, std::less<>>;                   // what {name} becomes
using ByDialect = std::map<std::string, std::vector<std::string>, std::less<>>;  // "apt" -> lines

struct SetupDistribution {
  std::string id, name;  // "ubuntu-24.04", "Ubuntu 24.04"
  std::vector<std::string> dialects;
  std::optional<std::string> repository;  // in NVIDIA's: "ubuntu2404"
  std::vector<std::string> pythons;       // its own first
  int gcc = 0;
  std::vector<int> older_gcc;  // beside its own, some are newer
  std::string first_toolkit;
  std::optional<std::string> last_toolkit;
  std::optional<int> newest_driver;
  std::string image;  // of nvidia/cuda, "ubuntu24.04"
  std::string source;
  bool verified = true;
};

struct SetupStep {
  std::string id;
  Words title, why;
  std::string repository;  // "distribution", "NVIDIA", ...; empty: installs nothing
  ByDialect packages, commands;
  bool reboot = false;
};

struct OldRecipe {
  std::string id;
  std::vector<std::string> when;
  Words said, truth;
  std::string source;
};

class SetupTables {
 public:
  static Result<SetupTables> load();
  static Result<SetupTables> from_toml(std::string_view text, std::string_view name);

  std::vector<SetupDistribution> distributions;
  std::vector<SetupStep> steps;
  std::vector<OldRecipe> recipes;
  std::map<std::string, Words, std::less<>> reasons, changes, words;
  Names checks;  // "python", "cpp", "cuda"

  const SetupDistribution* distribution(std::string_view id) const;
  const SetupStep* step(std::string_view id) const;
};

// The lines of the nearest of the dialects; nothing where it has none.
const std::vector<std::string>* nearest(const ByDialect& lines, const std::vector<std::string>& dialects);

// {name} of lower-case letters and underscores becomes names["name"]; one that is not there stays as it is, so that a
// forgotten one is seen.
std::string filled_in(std::string_view text, const Names& names);
Words filled_in(const Words& words, const Names& names);

}  // namespace gpuwright::doctor
