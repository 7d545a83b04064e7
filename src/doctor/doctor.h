// Umbrella of the room: is this machine set up right? A Host (host.h) gives files, a Machine (machine.h) what several
// checks ask, a Check (check.h) looks at one thing, a ProblemBook (texts.h, data/checks*.toml) has the words.
// diagnose() runs the checks from the ground up: the first layer that fails is the cause, what fails above it a
// consequence.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "doctor/check.h"
#include "doctor/machine.h"
#include "doctor/texts.h"

namespace gpuwright::doctor {

struct CheckResult {
  const Check* check = nullptr;
  Outcome outcome;
  double milliseconds = 0;
};

struct Diagnosis {
  // The cause first, then its consequences, then warnings, then what is only worth knowing.
  std::vector<Finding> findings;
  std::vector<CheckResult> checks;  // in the order in which they ran
  // The first fatal finding, else the first warning; null when nothing is wrong.
  const Finding* first_cause() const;
};

struct DiagnosisOptions {
  std::string language = "en";
  std::vector<std::string> only;  // ids or "kmod.*"; empty: all
  bool performance = false;       // doctor --perf: those checks alone
};

// Every check, in the order of layers.
const std::vector<Check>& all_checks();
Diagnosis diagnose(const Machine& machine, const ProblemBook& book, const DiagnosisOptions& options);

}  // namespace gpuwright::doctor
