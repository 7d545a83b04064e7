#include "doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/rules/template.h"
#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/distribution.h"

namespace gpuwright::doctor {
namespace {

bool matches(std::string_view pattern, std::string_view id) {
  if (pattern.ends_with('*')) return id.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == id || (id.starts_with(pattern) && id[pattern.size()] == '.');
}

bool wanted(const Check& check, const DiagnosisOptions& options) {
  if (options.only.empty())
    return check.use == Check::Use::both || (check.use == Check::Use::performance) == options.performance;
  return std::any_of(options.only.begin(), options.only.end(),
                     [&](const std::string& pattern) { return matches(pattern, check.id); });
}

struct Candidate {
  const Check* check = nullptr;
  const Problem* problem = nullptr;
  const ProblemText* text = nullptr;  // never null
  bool dropped = false;
  Role role = Role::cause;
};

std::vector<Candidate> candidates_of(const std::vector<CheckResult>& results, const ProblemBook& book) {
  std::vector<Candidate> candidates;
  for (const CheckResult& result : results)
    for (const Problem& problem : result.outcome.problems)
      if (const ProblemText* text = book.find(problem.id)) candidates.push_back({result.check, &problem, text});
  for (Candidate& candidate : candidates)
    candidate.dropped = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
      return &other != &candidate && std::any_of(candidate.text->yields_to.begin(), candidate.text->yields_to.end(),
                                                 [&](const auto& id) { return matches(id, other.problem->id); });
    });
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.dropped; });
  return candidates;
}

// The checks ran from the ground up, so that the first fatal problem is the cause, and the fatal ones after it its
// consequences. What is no more than a warning stands for itself.
void assign_roles(std::vector<Candidate>& candidates) {
  bool caused = false;
  for (Candidate& candidate : candidates) {
    if (candidate.text->severity != Severity::fatal) continue;
    candidate.role = caused ? Role::consequence : Role::cause;
    caused = true;
  }
  const auto rank = [](const Candidate& candidate) {
    return static_cast<int>(Severity::fatal) - static_cast<int>(candidate.text->severity);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
}

std::vector<std::string> commands_for(const ProblemFix& fix, const Dialects& dialects, const Facts& facts) {
  std::vector<std::string> commands;
  for (const std::string& dialect : dialects) {
    const auto found = fix.commands.find(dialect);
    if (found == fix.commands.end()) continue;
    for (const std::string& command : found->second) commands.push_back(filled_command(command, facts));
    break;
  }
  return commands;
}

// What texts and conditions may ask of any problem.
FactSheet with_surroundings(FactSheet sheet, const Machine& machine) {
  sheet.set("kernel_release", machine.host().kernel_release().value_or(""));
  sheet.set("container", machine.surroundings().container.value_or(""));
  return sheet;
}

Finding finding_of(const Candidate& candidate, const Machine& machine, const Dialects& dialects,
                   const std::string& language) {
  const ProblemText& text = *candidate.text;
  const FactSheet sheet = with_surroundings(candidate.problem->sheet, machine);
  const Facts& facts = sheet.facts();
  Finding finding;
  finding.id = finding.kind = text.id;
  finding.scope = text.scope;
  finding.severity = text.severity;
  finding.role = candidate.role;
  finding.title = filled(text.title.in(language), facts);
  finding.cause = filled(text.cause.in(language), facts);
  finding.evidence = candidate.problem->evidence;
  finding.facts = candidate.problem->sheet.values();
  Scene scene;
  scene.facts = &facts;
  scene.first_line = scene.times = [](std::string_view) { return std::int64_t{0}; };
  scene.found = [](std::string_view) { return false; };
  scene.lookup = [](std::string_view, std::string_view) { return std::optional<std::string>(); };
  for (const ProblemFix& fix : text.fixes)
    if (fix.when.holds(scene))
      finding.fixes.push_back(
          {filled(fix.text.in(language), facts), commands_for(fix, dialects, facts), fix.reboot, fix.safe, fix.url});
  return finding;
}

}  // namespace

const Finding* Diagnosis::first_cause() const {
  if (findings.empty() || findings.front().severity < Severity::warning) return nullptr;
  return &findings.front();
}

const std::vector<Check>& all_checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> checks;
    for (const auto table : {pci_checks, kernel_module_checks, driver_checks, node_checks, fabric_checks,
                             hardware_checks, system_checks, container_checks, amd_checks, intel_checks, cuda_checks,
                             framework_checks, communication_checks, cluster_checks, performance_checks})
      for (Check& check : table()) checks.push_back(check);
    std::stable_sort(checks.begin(), checks.end(), [](const Check& a, const Check& b) { return a.layer < b.layer; });
    return checks;
  }();
  return all;
}

Diagnosis diagnose(const Machine& machine, const ProblemBook& book, const DiagnosisOptions& options) {
  Diagnosis diagnosis;
  for (const Check& check : all_checks()) {
    if (!wanted(check, options)) continue;
    const auto begin = std::chrono::steady_clock::now();
    Outcome outcome = check.run(machine);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    diagnosis.checks.push_back({&check, std::move(outcome), took.count()});
  }
  std::vector<Candidate> candidates = candidates_of(diagnosis.checks, book);
  assign_roles(candidates);
  const auto distribution = read_distribution(machine.host());
  const Dialects dialects = distribution ? dialects_of(*distribution) : Dialects{"any"};
  for (const Candidate& candidate : candidates)
    diagnosis.findings.push_back(finding_of(candidate, machine, dialects, options.language));
  return diagnosis;
}

}  // namespace gpuwright::doctor
