// doctor --fix and --apply: what a diagnosis advises, as a script to read, or step by step with a question before each.
#pragma once

#include <string>

#include "cli/command.h"
#include "doctor/doctor.h"

namespace gpuwright::cli {

// A POSIX shell script. Active are the commands of the first fix of each finding that is no consequence; what asks for
// a restart, and other ways, stand there as comments.
std::string fix_script(const doctor::Machine& machine, const doctor::Diagnosis& diagnosis);

// Runs the steps that are marked as safe, one by one, each after a yes (or all with `yes`). Ends at the first that
// fails. An error where nobody can be asked.
Result<int> apply_fixes(const doctor::Diagnosis& diagnosis, bool yes, const Console& console);

}  // namespace gpuwright::cli
