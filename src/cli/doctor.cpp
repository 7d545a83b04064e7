// gpuwright doctor: is this machine set up right?
#include "doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "catalog/catalog.h"
#include "cli/commands.h"
#include "cli/doctor_answer.h"
#include "cli/doctor_fix.h"
#include "cli/doctor_simulated.h"
#include "cli/style.h"
#include "device/reader.h"
#include "doctor/archive.h"
#include "doctor/bundle.h"
#include "doctor/capture.h"
#include "sim/host.h"

namespace gpuwright::cli {
namespace {

// What is looked at: this machine, a folder, or what is unpacked into one for as long as this lives.
struct Root {
  std::optional<doctor::UnpackedHost> unpacked;
  std::string path;
  std::optional<device::Snapshot> snapshot;  // of a simulated host

  Status unpack(const doctor::Archive& archive) {
    unpacked.emplace(GW_TRY(doctor::UnpackedHost::unpack(archive)));
    path = unpacked->root();
    return {};
  }
};

Result<Root> simulate(const std::string& scenario) {
  device::ReaderOptions options;
  options.sources.simulated = GW_TRY(sim::Host::from_scenario(scenario));
  options.sources.wants.links = true;
  Root root;
  device::Reader reader(options);
  root.snapshot = reader.read();
  GW_TRY(root.unpack(simulated_machine(*options.sources.simulated, *root.snapshot)));
  return root;
}

Result<Root> open_root(const std::optional<std::string>& path) {
  Root root;
  if (!path) return root;
  root.path = *path;
  if (is_directory(*path)) return root;
  GW_TRY(check_path(*path));
  GW_TRY(root.unpack(GW_TRY(doctor::read_archive(*path))));
  return root;
}

// What the drivers tell: of a captured host what was captured, or at least what its files hold of AMD's and Intel's.
Result<device::Snapshot> read_snapshot(const doctor::Host& host) {
  if (auto captured = GW_TRY(doctor::captured_snapshot(host))) return std::move(*captured);
  device::ReaderOptions options;
  options.sources.wants.links = true;
  options.sources.wants.processes = false;
  if (!host.is_live()) {
    options.sources.root = host.root();
    options.sources.nvml_library = "";
    options.sources.dcmi_library = "";
  }
  device::Reader reader(std::move(options));
  return reader.read();
}

Status check_only(const std::vector<std::string>& patterns) {
  std::vector<std::string> ids;
  for (const doctor::Check& check : doctor::all_checks()) ids.emplace_back(check.id);
  for (const std::string& pattern : patterns) {
    const std::string_view stem = std::string_view(pattern).substr(0, pattern.find('*'));
    if (std::any_of(ids.begin(), ids.end(), [&](const std::string& id) { return id.starts_with(stem); })) continue;
    const auto near = nearest_name(pattern, ids);
    return fail(ErrorCode::bad_input, fmt::format("there is no check \"{}\"", pattern),
                near ? "did you mean " + *near + "?" : "gpuwright doctor --list shows all of them");
  }
  return {};
}

int list_checks(const Console& console) {
  Json list = Json::array();
  for (const doctor::Check& check : doctor::all_checks()) {
    if (console.json)
      list.push(Json().set("id", check.id).set("layer", to_string(check.layer)));
    else
      console.out << fmt::format("{:<18} {}\n", check.id, to_string(check.layer));
  }
  if (console.json)
    console.out << Json().set("schema", "gpuwright.doctor-checks/1").set("checks", std::move(list)).dump() << '\n';
  return kDone;
}

bool is_bad(const doctor::Diagnosis& diagnosis, std::string_view fail_on) {
  if (fail_on == "never") return false;
  const Severity least = severity_named(fail_on).value_or(Severity::warning);
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& finding) { return finding.severity >= least; });
}

Status check_words(const Arguments& arguments) {
  if (arguments.has("--apply") && (arguments.has("--root") || arguments.has("--simulate")))
    return fail(ErrorCode::bad_input, "--apply changes this machine, not the one under --root",
                "--fix prints a script for that one");
  if (arguments.has("--root") && arguments.has("--simulate"))
    return fail(ErrorCode::bad_input, "--simulate and --root exclude each other", "give one of them");
  if (arguments.has("--yes") && !arguments.has("--apply"))
    return fail(ErrorCode::bad_input, "--yes belongs to --apply");
  return {};
}

Result<int> answer(const doctor::Machine& machine, const doctor::Diagnosis& diagnosis, const Arguments& arguments,
                   const Console& console) {
  if (const auto file = arguments.value("--bundle")) {
    GW_TRY(write_file_atomically(*file, doctor::archive_text(doctor::bundle(machine))));
    console.err << say(console, "{} written; read it before you send it: it is plain text.", printable(*file)) << '\n';
  }
  if (arguments.has("--fix")) {
    console.out << fix_script(machine, diagnosis);
    return kDone;
  }
  if (console.json)
    console.out << to_json(machine, diagnosis).dump() << '\n';
  else
    print_diagnosis(machine, diagnosis, arguments.has("--all"), console);
  if (arguments.has("--apply")) return apply_fixes(diagnosis, arguments.has("--yes"), console);
  return is_bad(diagnosis, arguments.value("--fail-on").value_or("warning")) ? kAnswerIsNo : kDone;
}

Result<int> run_doctor(const Arguments& arguments, const Console& console) {
  if (arguments.has("--list")) return list_checks(console);
  GW_TRY(check_words(arguments));
  doctor::DiagnosisOptions options;
  options.language = console.language == Language::chinese ? "zh" : "en";
  options.performance = arguments.has("--perf");
  for (const std::string& value : arguments.values("--only"))
    for (const std::string_view one : split(value, ','))
      if (!one.empty()) options.only.emplace_back(one);
  GW_TRY(check_only(options.only));

  const Root root =
      GW_TRY(arguments.has("--simulate") ? simulate(arguments.value("--simulate").value_or(sim::default_scenario()))
                                         : open_root(arguments.value("--root")));
  const doctor::Host host = GW_TRY(doctor::Host::open(root.path));
  const device::Snapshot snapshot = root.snapshot ? *root.snapshot : GW_TRY(read_snapshot(host));
  if (!snapshot.simulated.empty() && !console.json && !arguments.has("--fix"))
    console.out << fmt::format("SIMULATED ({}): nothing here is of this machine\n", printable(snapshot.simulated));
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  const doctor::ProblemBook book = GW_TRY(doctor::ProblemBook::load());
  const doctor::Machine machine(host, catalog, &snapshot);
  return answer(machine, doctor::diagnose(machine, book, options), arguments, console);
}

}  // namespace

Command doctor_command() {
  Command command;
  command.name = "doctor";
  command.summary = "Is this machine set up right for its GPUs, and if not, what to change";
  command.description =
      "Looks at the machine from the ground up: bus, kernel module, driver, device nodes, fabric, hardware, system, "
      "containers, CUDA, Python frameworks, NCCL, Kubernetes and Slurm. The first layer that fails is the cause; what "
      "fails above it is named as its consequence. Each finding comes with what shows it and with the commands that "
      "mend it, for this distribution. What cannot be read is unknown, never a finding.\n\n"
      "Nothing is run and nothing is changed, unless with --apply: files are read, and NVIDIA's management library is "
      "asked. No GPU, Python or right of root is needed; root sees more.";
  command.options = {
      {"--perf", "", "", "is it fast: links, power, clocks, CPUs, data; advice in the order of gain"},
      {.name = "--only",
       .value = "CHECKS",
       .help = "these checks alone: ids or groups (kmod.*), several with commas",
       .repeated = true},
      {"--all", "-a", "", "also list the checks that found nothing"},
      {"--list", "", "", "list the checks there are"},
      {.name = "--fail-on",
       .value = "SEVERITY",
       .help = "from which severity on the exit code is 1",
       .choices = {"fatal", "warning", "info", "never"},
       .default_text = "warning"},
      {"--fix", "", "", "print a script that mends what was found, instead of the answer"},
      {"--apply", "", "", "run the safe steps of the fixes, each after a yes"},
      {"--yes", "-y", "", "with --apply: do not ask"},
      {"--bundle", "", "FILE",
       "write what was looked at into a text file, without names and secrets, to send to somebody"},
      {"--root", "", "DIR", "look at a machine whose files were captured under DIR, or at a bundle"},
      {.name = "--simulate",
       .value = "SCENARIO",
       .help = "a simulated host: a built-in scenario or a file.toml",
       .choices = sim::built_in_names(),
       .default_text = sim::default_scenario(),
       .optional_value = true,
       .accepts = [](std::string_view word) { return word.ends_with(".toml"); }},
  };
  command.examples = {
      {"gpuwright doctor", "what is wrong with this machine"},
      {"gpuwright doctor --all", "every check with what it saw"},
      {"gpuwright doctor --perf", "what makes it slower than it has to be"},
      {"gpuwright doctor --only kmod.*,drv.* --lang zh", "kernel module and driver alone, in Chinese"},
      {"gpuwright doctor --fix > mend.sh", "a script to read and run"},
      {"gpuwright doctor --bundle machine.txt", "for somebody who helps; gpuwright doctor --root machine.txt reads it"},
  };
  command.exit_notes = {"0  nothing is wrong", "1  a finding of warning or above (see --fail-on)"};
  command.run = run_doctor;
  return command;
}

}  // namespace gpuwright::cli
