// What is said of a problem: data/checks*.toml. Adding a fix for a distribution needs no C++.
//
// [recipe.NAME]  commands that several fixes share, as `commands` below; a fix names it by "@NAME"
// [[problem]]
// id           as checks give it
// severity     fatal: the GPU cannot be used as it should; warning: slow, risky or wrong soon; info
// scope        gpu, driver, software, host, cluster
// title, cause { en, zh } with {facts} in them (base/rules/template.h)
// yields_to    ids ("kmod.*") beside which this one is not said: they are the same fault, told better
// stays        true: is still wrong when the layers below are right again
// [[problem.fix]]
// en, zh       what it does
// when         a condition on facts (base/rules/expression.h)
// commands     a list, or by distribution: { apt, debian, ubuntu, dnf, rhel, fedora, suse, arch, any }. The nearest
//              counts: ubuntu before apt before any. A distribution without commands is shown the text alone.
// reboot, safe, url
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/result.h"
#include "base/rules/expression.h"
#include "base/rules/words.h"

namespace gpuwright::doctor {

// Which commands a distribution takes, from its own name to "any": {"ubuntu", "apt", "any"}.
using Dialects = std::vector<std::string>;

using Commands = std::map<std::string, std::vector<std::string>, std::less<>>;  // by dialect

struct ProblemFix {
  Words text;
  Expression when;
  Commands commands;
  bool reboot = false, safe = false;
  std::string url;
};

struct ProblemText {
  std::string id;
  Severity severity = Severity::warning;
  Scope scope = Scope::host;
  Words title, cause;
  std::vector<std::string> yields_to;
  bool stays = false;
  std::vector<ProblemFix> fixes;
};

class ProblemBook {
 public:
  static Result<ProblemBook> load();  // the built-in files
  // An error names the file, the row and what is wrong with it.
  Status add(std::string_view toml, const std::string& name);
  const ProblemText* find(std::string_view id) const;
  const std::vector<std::unique_ptr<ProblemText>>& problems() const { return problems_; }

 private:
  std::map<std::string, Commands, std::less<>> recipes_;
  std::vector<std::unique_ptr<ProblemText>> problems_;
};

}  // namespace gpuwright::doctor
