#include "cli/doctor_fix.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/doctor_answer.h"
#include "cli/style.h"

extern char** environ;

namespace gpuwright::cli {
namespace {

// What stands for something that only the reader knows, or that has to be typed into one's own shell.
bool is_for_people(std::string_view command) {
  if (command.starts_with("export ") || command.starts_with("unset ") || command.starts_with("ulimit ")) return true;
  for (const std::string_view word : split(command, ' '))
    if (word == "IMAGE" || word == "NODE" || word == "PROGRAM" || word == "...") return true;
  return false;
}

bool restarts(std::string_view command) {
  return command == "sudo reboot" || command == "sudo poweroff";
}

std::string comment(std::string_view text, std::string_view begin = "# ") {
  std::string lines;
  const std::string plain = printable(text);
  for (const std::string_view line : split(plain, '\n')) lines += fmt::format("{}{}\n", begin, line);
  return lines;
}

bool is_advice(const Finding& finding) {
  return finding.role == Role::cause && finding.severity >= Severity::warning;
}

std::string finding_script(const Finding& finding, int number, bool& restart) {
  std::string script = "\n" + comment(fmt::format("{}. {}: {}", number, finding.id, finding.title));
  script += comment("   " + finding.cause);
  bool active = true;  // the first fix that has commands
  for (const Fix& fix : finding.fixes) {
    script += comment(fmt::format("{}{}", active ? "" : "Another way: ", fix.text));
    for (const std::string& command : fix.commands) {
      const bool runs = active && !is_for_people(command) && !restarts(command);
      script += runs ? printable(command) + "\n" : comment(command, "#   ");
    }
    if (active) restart = restart || fix.reboot;
    active = active && fix.commands.empty();
  }
  return script;
}

// Through a shell: the commands are ours, and every fact in them is quoted (base/rules/template.h).
Result<int> run_step(const std::string& command) {
  const char* words[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(words), environ);
  if (error != 0) return fail(ErrorCode::unavailable, fmt::format("cannot start /bin/sh: {}", std::strerror(error)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail(ErrorCode::internal, "the step was lost sight of");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum class Answer { yes, no, quit };

Answer ask(const std::string& command, const Console& console) {
  console.err << "  " << printable(command) << '\n' << say(console, "Run it? [y/N/q] ") << std::flush;
  std::string line;
  if (!std::getline(std::cin, line)) return Answer::quit;
  const std::string word = lower(trim(line));
  if (word == "y" || word == "yes" || word == "是") return Answer::yes;
  return word == "q" || word == "quit" ? Answer::quit : Answer::no;
}

struct Step {
  const Finding* finding;
  std::string command;
};

std::vector<Step> safe_steps(const doctor::Diagnosis& diagnosis) {
  std::vector<Step> steps;
  for (const Finding& finding : diagnosis.findings) {
    if (!is_advice(finding)) continue;
    for (const Fix& fix : finding.fixes)
      for (const std::string& command : fix.commands)
        if (fix.safe && !is_for_people(command) && !restarts(command)) steps.push_back({&finding, command});
  }
  return steps;
}

}  // namespace

std::string fix_script(const doctor::Machine& machine, const doctor::Diagnosis& diagnosis) {
  std::string script = "#!/bin/sh\n";
  script += comment("Written by gpuwright doctor --fix for: " + machine_line(machine));
  script += comment("Read it before you run it. Lines that begin with # are not run.");
  script += "set -eu\n";
  int number = 0;
  bool restart = false;
  for (const Finding& finding : diagnosis.findings)
    if (is_advice(finding)) script += finding_script(finding, ++number, restart);
  if (number == 0) script += comment("Nothing is to be done.");
  if (restart) script += "\n" + comment("Then restart the machine:") + comment("sudo reboot", "#   ");
  return script;
}

Result<int> apply_fixes(const doctor::Diagnosis& diagnosis, bool yes, const Console& console) {
  const std::vector<Step> steps = safe_steps(diagnosis);
  if (steps.empty()) {
    console.out << say(console, "There is no step that is safe to be run for you; --fix prints all of them.") << '\n';
    return kDone;
  }
  if (!yes && !is_terminal(STDIN_FILENO))
    return fail(ErrorCode::bad_input, "--apply asks before each step, and there is no terminal to ask at",
                "give --yes, too, or read what --fix prints");
  const Finding* shown = nullptr;
  for (const Step& step : steps) {
    if (step.finding != shown) console.err << paint(console, Tone::heading, printable(step.finding->title)) << '\n';
    shown = step.finding;
    if (!yes) {
      const Answer answer = ask(step.command, console);
      if (answer == Answer::quit) break;
      if (answer == Answer::no) continue;
    }
    console.out.flush();
    const int code = GW_TRY(run_step(step.command));
    if (code != 0)
      return fail(ErrorCode::unavailable, fmt::format("\"{}\" ended with exit code {}", step.command, code),
                  "the steps after it were not run");
  }
  return kDone;
}

}  // namespace gpuwright::cli
