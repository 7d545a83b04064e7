// cuda.toolkit and cuda.gcc: what extensions are built with. Programs that are installed ready-made need neither.
#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/checks/cuda.h"
#include "doctor/checks/software_advice.h"
#include "doctor/inventory.h"

namespace gpuwright::doctor {
namespace {

int major_of(std::string_view version) {
  return static_cast<int>(to_integer(version.substr(0, version.find('.'))).value_or(0));
}

// CUDA_HOME=/usr/local/cuda-11.8 of a toolkit that was removed; /usr/local/cuda that leads nowhere.
void find_dangling(const Machine& machine, Outcome& outcome) {
  const Host& host = machine.host();
  const auto tell = [&](const std::string& name, const std::string& folder) {
    outcome.wrong("cuda.toolkit.gone").item("name", name).fact("folder", folder).seen(name, folder);
  };
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string folder = host.variable(name).value_or("");
    if (folder.starts_with('/') && host.access(folder) == Access::absent) tell(name, folder);
  }
  const auto link = host.link("/usr/local/cuda");
  if (link && host.access("/usr/local/cuda/") == Access::absent) tell("/usr/local/cuda", *link);
}

// torch.utils.cpp_extension refuses to build when the majors differ.
void compare_with_torch(const Machine& machine, const Toolkit& toolkit, Outcome& outcome) {
  if (toolkit.version.empty()) return;
  for (const Torch& torch : machine.software().torches()) {
    if (!torch.build().cuda || major_of(*torch.build().cuda) == major_of(toolkit.version)) continue;
    Problem& problem = outcome.wrong("cuda.toolkit");
    describe(machine, torch, problem);
    const std::string wanted = catalog::version_prefix(*torch.build().cuda, 2);
    std::string package = wanted;
    std::replace(package.begin(), package.end(), '.', '-');
    problem.version("toolkit_version", toolkit.version)
        .fact("folder", toolkit.folder)
        .fact("found_by", toolkit.found_by);
    problem.fact("wanted_cuda", wanted).fact("package", "cuda-toolkit-" + package);
    problem.seen(toolkit.folder, toolkit.version);
  }
}

// Programs that this compiler makes do not start on an older major's driver.
void compare_with_driver(const Machine& machine, const Toolkit& toolkit, Outcome& outcome) {
  const auto driver = driver_for_programs(machine);
  if (!machine.has_nvidia() || !driver || toolkit.version.empty()) return;
  const auto floor = machine.compat().driver_floor(toolkit.version);
  if (!floor || compare_versions(*driver, *floor) >= 0) return;
  outcome.wrong("cuda.toolkit.newer")
      .version("toolkit_version", toolkit.version)
      .fact("folder", toolkit.folder)
      .version("driver_version", *driver)
      .version("driver_needed", *floor)
      .version("driver_cuda", machine.compat().newest_cuda_of(*driver).value_or(""))
      .seen(toolkit.folder, toolkit.version);
}

// The newest g++-N that nvcc would take.
int older_compiler(const Host& host, int most) {
  for (int major = most; major > 0; --major)
    if (host.exists(fmt::format("/usr/bin/g++-{}", major))) return major;
  return 0;
}

}  // namespace

Outcome check_cuda_toolkit(const Machine& machine) {
  const auto& toolkits = machine.software().toolkits();
  Outcome outcome = fine();
  find_dangling(machine, outcome);
  if (toolkits.empty()) {
    if (outcome.state == State::wrong) return outcome;
    return not_applicable("no CUDA toolkit (only needed to build)");
  }
  const Toolkit& toolkit = toolkits.front();
  compare_with_torch(machine, toolkit, outcome);
  compare_with_driver(machine, toolkit, outcome);
  outcome.text =
      fmt::format("{} in {}", toolkit.version.empty() ? "a toolkit" : "CUDA " + toolkit.version, toolkit.folder);
  return outcome;
}

Outcome check_cuda_gcc(const Machine& machine) {
  const auto& toolkits = machine.software().toolkits();
  if (toolkits.empty() || toolkits.front().version.empty()) return not_applicable("no CUDA toolkit");
  const Host& host = machine.host();
  for (const char* name : {"NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CUDAHOSTCXX"})
    if (!host.variable(name).value_or("").empty()) return fine(fmt::format("{} chooses the compiler", name));
  const auto compiler = host_compiler(host);
  if (!compiler) return unknown("no GCC whose version can be read");
  const Toolkit& toolkit = toolkits.front();
  const auto newest = machine.compat().newest_gcc(catalog::version_prefix(toolkit.version, 2));
  if (!newest) return unknown(fmt::format("the compilers of CUDA {} are not in the table", toolkit.version));
  if (compiler->major <= *newest)
    return fine(fmt::format("GCC {}, CUDA {} takes up to {}", compiler->major, toolkit.version, *newest));
  Outcome outcome = fine();
  Problem& problem = outcome.wrong("cuda.gcc");
  problem.fact("gcc", std::int64_t{compiler->major}).fact("newest_gcc", std::int64_t{*newest});
  problem.version("toolkit_version", toolkit.version).seen(compiler->source, fmt::format("GCC {}", compiler->major));
  if (const int older = older_compiler(host, *newest); older > 0) problem.fact("older_gcc", std::int64_t{older});
  return outcome;
}

}  // namespace gpuwright::doctor
