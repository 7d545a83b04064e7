// gpuwright setup: which driver, toolkit and framework go together for these GPUs, and how to install them.
#include "doctor/setup/setup.h"

#include "base/text.h"
#include "cli/commands.h"
#include "cli/setup_answer.h"
#include "cli/setup_wish.h"

namespace gpuwright::cli {
namespace {

Result<int> print_check(const doctor::SetupTables& tables, std::string name, const Console& console) {
  if (name == "c++") name = "cpp";
  const auto program = tables.checks.find(name);
  if (program == tables.checks.end()) return fail(ErrorCode::internal, "there is no such program");
  console.out << trim(program->second) << '\n';
  return kDone;
}

int print_all_recipes(const doctor::SetupTables& tables, const Console& console) {
  SetupAnswer answer;
  for (const doctor::OldRecipe& recipe : tables.recipes) answer.recipes.push_back(&recipe);
  print_recipes(answer.recipes, console);
  return kDone;
}

bool is_version(std::string_view text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && text.find_first_not_of("0123456789.") == text.npos;
}

Result<int> run_setup(const Arguments& arguments, const Console& console) {
  const doctor::SetupTables tables = GW_TRY(doctor::SetupTables::load());
  if (const auto name = arguments.value("--check")) return print_check(tables, *name, console);
  if (arguments.has("--old-recipes") && !console.json) return print_all_recipes(tables, console);
  const catalog::Compat compat = GW_TRY(catalog::Compat::load());
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  const doctor::Setup setup(compat, tables);
  SetupAnswer answer;
  answer.wish = GW_TRY(setup_wish_from(arguments, catalog, tables));
  if (const auto set = setup.solve(answer.wish))
    answer.set = *set;
  else
    answer.refusal = setup.refusal(answer.wish);
  const std::string_view language = console.language == Language::chinese ? "zh" : "en";
  if (answer.set && arguments.has("--script") && !console.json) {
    console.out << setup.script(answer.wish, *answer.set, language);
    return kDone;
  }
  if (answer.set) answer.actions = setup.actions(answer.wish, *answer.set);
  answer.recipes = setup.old_recipes(answer.wish);
  // A script that cannot be leaves its place empty, so that nothing is run by mistake.
  const bool aside = arguments.has("--script") && !answer.set && !console.json;
  if (console.json)
    console.out << to_json(answer).dump() << '\n';
  else if (aside)
    print_setup(answer, Console{console.err, console.err, false, console.terminal, console.width, false, console.wide,
                                console.unicode, console.language, false});
  else
    print_setup(answer, console);
  return answer.set ? kDone : kAnswerIsNo;
}

std::vector<Option> options() {
  return {
      {"--distribution", "-d", "NAME", "Ubuntu 24.04, debian-12, rocky 9, ... (default: the one of this machine)"},
      {"--torch", "", "VERSION", "PyTorch of that version; newest, or none", {}, "newest"},
      {.name = "--tensorflow",
       .value = "VERSION",
       .help = "TensorFlow, instead of PyTorch unless --torch is given, too",
       .optional_value = true,
       .accepts = is_version},
      {"--jax", "", "", "JAX, instead of PyTorch unless --torch is given, too"},
      {"--cuda", "", "VERSION", "CUDA of the framework's build and of the toolkit: 12.8 or cu128"},
      {"--toolkit", "", "", "a CUDA toolkit as well, to compile with nvcc"},
      {"--python", "", "VERSION", "Python of that version"},
      {"--driver", "", "VERSION", "an NVIDIA driver that has to stay: 535.104.05, or a branch, 535"},
      {"--container", "", "", "work in containers: the host gets the driver and the engine, the rest is an image"},
      {"--machine",
       "",
       "ARCH",
       "kind of CPU (default: this machine's, or what the GPU comes with)",
       {"x86_64", "aarch64"}},
      {"--script", "", "", "print a bash script that does it; it goes on after the restart when it is run again"},
      {"--check", "", "LANGUAGE", "print a program that shows that the GPU computes", {"python", "c++", "cuda"}},
      {"--old-recipes", "", "", "print everything that old guides got wrong"},
      {"--root", "", "DIR", "look for GPUs, driver and distribution under DIR instead of /"},
  };
}

}  // namespace

Command setup_command() {
  Command command;
  command.name = "setup";
  command.summary = "Say what goes together for a GPU, and how to install it";
  command.description =
      "From a bare machine to one that trains: the driver's branch and kind of kernel modules, toolkit, PyTorch build "
      "(or TensorFlow, JAX), Python and image that go together for these GPUs on this distribution, and the commands "
      "in their order. What cannot be is refused, with the smallest change that makes it possible.\n\nIt prints and "
      "changes nothing. Without GPU it looks at the ones of this machine, and keeps a driver that is good enough.";
  command.arguments = {{"GPU", "name of a GPU, as in gpuwright gpus (default: the ones that are here)", false, true}};
  command.options = options();
  command.examples = {
      {"gpuwright setup", "this machine, with the newest PyTorch that goes"},
      {"gpuwright setup \"rtx 5090\" -d ubuntu-24.04 --toolkit", "another machine, with a compiler"},
      {"gpuwright setup v100 -d debian-12 --script > setup.sh", "a script for a GPU that newer wheels leave out"},
      {"gpuwright setup 4090 -d rocky9 --container", "containers: driver and engine on the host"},
      {"gpuwright setup h100 -d ubuntu-22.04 --driver 535 --torch 2.9", "what goes with a driver that must stay"},
      {"gpuwright setup --check c++ > check.cpp", "a program that shows that the driver works"},
  };
  command.exit_notes = {"0  it goes together", "1  it does not; what must give is said"};
  command.run = run_setup;
  return command;
}

}  // namespace gpuwright::cli
