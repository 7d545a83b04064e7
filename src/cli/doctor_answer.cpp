#include "cli/doctor_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/doctor_software.h"
#include "cli/explain_answer.h"
#include "cli/live/stat_json.h"
#include "cli/style.h"
#include "cli/table.h"
#include "doctor/distribution.h"

namespace gpuwright::cli {
namespace {

using doctor::CheckResult;
using doctor::Diagnosis;
using doctor::Machine;
using doctor::State;

constexpr int kIndent = 4;

Tone tone_of(const Finding& finding) {
  if (finding.role == Role::consequence) return Tone::dim;
  switch (finding.severity) {
    case Severity::fatal:
      return Tone::bad;
    case Severity::warning:
      return Tone::warning;
    default:
      return Tone::plain;
  }
}

std::string head_of(const Finding& finding, const Console& console) {
  if (finding.role == Role::consequence) return say(console, "Above it, perhaps in consequence: {}", finding.title);
  if (finding.severity == Severity::fatal) return say(console, "Cause: {}", finding.title);
  if (finding.severity == Severity::warning) return say(console, "Warning: {}", finding.title);
  return say(console, "Note: {}", finding.title);
}

void print_evidence(const Finding& finding, const Console& console) {
  constexpr std::size_t kMostShown = 6;
  std::size_t shown = 0;
  for (const Evidence& evidence : finding.evidence) {
    if (++shown > kMostShown) {
      console.out << paint(console, Tone::dim, fmt::format("    ... {} more", finding.evidence.size() - kMostShown))
                  << '\n';
      break;
    }
    std::string place = "    " + printable(evidence.source);
    if (evidence.line > 0) place += fmt::format(":{}", evidence.line);
    std::string text = printable(trim(evidence.text));
    if (!text.empty()) place += ": ";
    if (evidence.count > 1) text += fmt::format("  ({} times)", with_thousands(evidence.count));
    if (!console.wide) text = shorten(text, std::max(20, console.width - display_width(place)), console.unicode);
    console.out << paint(console, Tone::dim, place) << text << '\n';
  }
}

void print_fixes(const Finding& finding, const Console& console) {
  int number = 0;
  for (const Fix& fix : finding.fixes) {
    std::string text = fmt::format("    {}. {}", ++number, fix.text);
    if (fix.reboot) text += say(console, " (needs a restart)");
    console.out << wrap(text, console.width, 7) << '\n';
    for (const std::string& command : fix.commands)
      console.out << "         " << paint(console, Tone::name, printable(command)) << '\n';
    if (!fix.url.empty()) console.out << "         " << fix.url << '\n';
  }
}

void print_finding(const Finding& finding, const Console& console) {
  console.out << paint(console, tone_of(finding), wrap(head_of(finding, console), console.width, 2)) << '\n';
  console.out << wrap("    " + finding.cause, console.width, kIndent) << '\n';
  print_evidence(finding, console);
  print_fixes(finding, console);
  console.out << paint(
                     console, Tone::dim,
                     fmt::format("    {} ({}, {})", finding.id, to_string(finding.severity), to_string(finding.scope)))
              << '\n';
}

std::size_t count(const Diagnosis& diagnosis, State state) {
  return static_cast<std::size_t>(
      std::count_if(diagnosis.checks.begin(), diagnosis.checks.end(),
                    [&](const CheckResult& result) { return result.outcome.state == state; }));
}

std::string summary(const Diagnosis& diagnosis, const Console& console) {
  return say(console, "{} checks: {} right, {} wrong, {} that cannot be told, {} that do not apply",
             diagnosis.checks.size(), count(diagnosis, State::ok), count(diagnosis, State::wrong),
             count(diagnosis, State::unknown), count(diagnosis, State::not_applicable));
}

void print_checks(const Diagnosis& diagnosis, const Console& console) {
  print_heading(console, say(console, "Checks"));
  Table table({{""}, {""}, {"", Align::left, true}}, 2);
  for (const CheckResult& result : diagnosis.checks)
    table.add({std::string(result.check->id), std::string(say(console, to_string(result.outcome.state))),
               printable(result.outcome.text)});
  table.print(console);
}

std::string_view layer_of(const Diagnosis& diagnosis, const Finding& finding) {
  for (const CheckResult& result : diagnosis.checks)
    for (const doctor::Problem& problem : result.outcome.problems)
      if (problem.id == finding.id) return to_string(result.check->layer);
  return "";
}

std::string_view word(State state) {
  constexpr std::array<std::string_view, 4> kWords = {"ok", "wrong", "unknown", "not_applicable"};
  return kWords[static_cast<std::size_t>(state)];
}

Json machine_json(const Machine& machine) {
  Json gpus = Json::array();
  for (const doctor::PciGpu& gpu : machine.gpus())
    gpus.push(Json()
                  .set("name", gpu.name)
                  .set("pci_address", gpu.address)
                  .set("pci_id", catalog::to_string({gpu.id.vendor, gpu.id.device, 0, 0}))
                  .set("driver", gpu.driver.empty() ? Json() : Json(gpu.driver))
                  .set("architecture", gpu.architecture.empty() ? Json() : Json(gpu.architecture))
                  .set("compute_capability", gpu.compute_capability.empty() ? Json() : Json(gpu.compute_capability)));
  const auto distribution = doctor::read_distribution(machine.host());
  const doctor::Surroundings& around = machine.surroundings();
  return Json()
      .set("distribution", distribution ? Json(distribution->name) : Json())
      .set("kernel", machine.host().kernel_release())
      .set("machine", machine.host().machine())
      .set("container", around.container && around.container->empty() ? Json() : Json(around.container))
      .set("wsl", around.wsl)
      .set("virtual_machine", around.virtual_machine)
      .set("nvidia_driver", machine.nvidia().version())
      .set("nvidia_open_module", machine.nvidia().open)
      .set("newest_cuda", machine.driver_cuda())
      .set("gpus", std::move(gpus))
      .set("software", software_json(machine));
}

}  // namespace

std::string machine_line(const Machine& machine) {
  std::vector<std::string> parts;
  if (const auto distribution = doctor::read_distribution(machine.host())) parts.push_back(distribution->name);
  if (const auto release = machine.host().kernel_release()) parts.push_back("Linux " + *release);
  if (machine.surroundings().in_container()) parts.push_back("container (" + *machine.surroundings().container + ")");
  std::vector<std::pair<std::string, int>> gpus;
  for (const doctor::PciGpu& gpu : machine.gpus()) {
    if (!gpus.empty() && gpus.back().first == gpu.name)
      ++gpus.back().second;
    else
      gpus.emplace_back(gpu.name, 1);
  }
  for (const auto& [name, number] : gpus) parts.push_back(number > 1 ? fmt::format("{} x {}", number, name) : name);
  if (const auto version = machine.nvidia().version()) parts.push_back("driver " + *version);
  if (const auto cuda = machine.driver_cuda()) parts.push_back("CUDA up to " + *cuda);
  return printable(fmt::format("{}", fmt::join(parts, ", ")));
}

void print_diagnosis(const Machine& machine, const Diagnosis& diagnosis, bool everything, const Console& console) {
  console.out << paint(console, Tone::dim, wrap(machine_line(machine), console.width, 2)) << "\n\n";
  for (const Finding& finding : diagnosis.findings) {
    print_finding(finding, console);
    console.out << '\n';
  }
  if (diagnosis.first_cause() == nullptr) {
    const bool told = count(diagnosis, State::ok) > 0;
    console.out << paint(console, told ? Tone::good : Tone::warning,
                         say(console, told ? "Nothing is wrong as far as can be told."
                                           : "Nothing could be checked: what the checks read is not there."))
                << '\n';
  }
  console.out << wrap(summary(diagnosis, console), console.width, 2) << '\n';
  if (everything) print_checks(diagnosis, console);
}

// What the drivers tell of the GPUs: the fields of gpuwright.stat/1. Null where none was asked.
Json devices_json(const device::Snapshot* snapshot) {
  if (snapshot == nullptr) return {};
  const Json told = stat_json(*snapshot);
  Json devices = Json::object();
  for (const char* key : {"drivers", "gpus", "sources"})
    if (const Json* value = told.find(key)) devices.set(key, *value);
  return devices;
}

Json to_json(const Machine& machine, const Diagnosis& diagnosis) {
  Json findings = Json::array(), checks = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    Json facts = Json::object();
    for (const FactValue& fact : finding.facts) facts.set(fact.name, to_json(fact));
    findings.push(to_json(finding).set("layer", layer_of(diagnosis, finding)).set("facts", std::move(facts)));
  }
  for (const CheckResult& result : diagnosis.checks)
    checks.push(Json()
                    .set("id", result.check->id)
                    .set("layer", to_string(result.check->layer))
                    .set("state", word(result.outcome.state))
                    .set("text", result.outcome.text.empty() ? Json() : Json(result.outcome.text)));
  const Finding* cause = diagnosis.first_cause();
  return Json()
      .set("schema", "gpuwright.doctor/1")
      .set("verdict", cause == nullptr ? Json("healthy") : Json(cause->id))
      .set("simulated", machine.snapshot() != nullptr && !machine.snapshot()->simulated.empty()
                            ? Json(machine.snapshot()->simulated)
                            : Json())
      .set("host", machine_json(machine))
      .set("devices", devices_json(machine.snapshot()))
      .set("findings", std::move(findings))
      .set("checks", std::move(checks));
}

}  // namespace gpuwright::cli
