// fw.abi and fw.libstdcxx: symbols and symbol versions that a library wants and that nothing loaded beside it has. What
// `import` would fail with, without importing.
#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/software_advice.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostExtensions = 96, kMostSymbols = 20000;
// Packages whose extensions link against PyTorch, with their folders; others lie at the top of site-packages.
constexpr const char* kFolders[] = {"flash_attn", "xformers",      "torchvision",  "torchaudio/lib", "vllm",
                                    "mmcv",       "detectron2",    "natten",       "pytorch3d",      "sgl_kernel",
                                    "apex",       "torch_scatter", "torch_sparse", "torch_cluster",  "auto_gptq",
                                    "exllamav2",  "deep_gemm",     "groundingdino"};

struct Extension {
  std::string path;
  std::unique_ptr<ByteSource> source;
  ElfFile elf;
};

bool needs_torch(const ElfFile& elf) {
  return std::any_of(elf.needed.begin(), elf.needed.end(), [](const std::string& name) {
    return name.starts_with("libtorch") || name.starts_with("libc10");
  });
}

std::vector<Extension> extensions_of(const Host& host, const PythonEnvironment& environment) {
  std::vector<Extension> extensions;
  const auto look_into = [&](const std::string& folder) {
    for (const std::string& name : host.names(folder, 8192)) {
      if (!name.ends_with(".so") || extensions.size() >= kMostExtensions) continue;
      auto source = host.bytes(folder + "/" + name);
      if (!source) continue;
      auto elf = ElfFile::open(**source);
      if (!elf || !needs_torch(*elf)) continue;
      extensions.push_back({folder + "/" + name, std::move(*source), std::move(*elf)});
    }
  };
  for (const std::string& site : environment.sites) {
    look_into(site);
    for (const char* folder : kFolders) look_into(site + "/" + folder);
  }
  return extensions;
}

// Names of PyTorch's namespaces in mangled symbols: c10::, at::, torch::.
bool is_of_torch(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return false;
  const std::string_view begin = symbol.substr(0, 24);
  for (const char* name : {"3c10", "2at", "5torch"})
    if (begin.find(name) != std::string_view::npos) return true;
  return false;
}

std::optional<std::string> missing_symbol(const Extension& extension, const std::vector<const LoadedLibrary*>& torch) {
  const auto symbols = extension.elf.undefined_symbols();
  if (!symbols) return std::nullopt;
  for (std::size_t i = 0; i < symbols->size() && i < kMostSymbols; ++i) {
    const std::string& symbol = (*symbols)[i];
    if (!is_of_torch(symbol)) continue;
    const bool there = std::any_of(torch.begin(), torch.end(), [&](const LoadedLibrary* library) {
      return library->elf.defines(symbol).value_or(true);
    });
    if (!there) return symbol;
  }
  return std::nullopt;
}

// The package that brought a file: by the folder's name, else by the extension's ("flash_attn_2_cuda").
const Package* owner_of(const PythonEnvironment& environment, const std::string& path) {
  for (const std::string& site : environment.sites) {
    if (!path.starts_with(site + "/")) continue;
    std::string name = path.substr(site.size() + 1);
    name = normalised_name(name.substr(0, name.find_first_of("/.")));
    while (!name.empty()) {
      if (const Package* package = environment.find(name)) return package;
      const std::size_t dash = name.rfind('-');
      name.resize(dash == std::string::npos ? 0 : dash);
    }
  }
  return nullptr;
}

// Whether a symbol has C++11's strings in it, or those of before: what _GLIBCXX_USE_CXX11_ABI decides.
std::string strings_of(std::string_view symbol) {
  if (symbol.find("__cxx11") != std::string_view::npos) return "TRUE";
  return symbol.ends_with("Ss") || symbol.find("RKSs") != std::string_view::npos ? "FALSE" : "";
}

void check_extensions(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const auto own = torch.own_libraries();
  // Without the main libraries every symbol would be missing.
  const auto has = [&](std::string_view name) {
    return std::any_of(own.begin(), own.end(), [&](const LoadedLibrary* library) { return library->name == name; });
  };
  if (!has("libc10.so") || !(has("libtorch_cpu.so") || has("libtorch.so"))) return;
  for (const Extension& extension : extensions_of(machine.host(), torch.environment())) {
    const auto symbol = missing_symbol(extension, own);
    if (!symbol) continue;
    Problem& problem = outcome.wrong("fw.abi");
    describe(machine, torch, problem);
    if (const Package* owner = owner_of(torch.environment(), extension.path))
      problem.fact("package", owner->name).version("package_version", owner->version);
    problem.fact("extension", extension.path).fact("symbol", *symbol).fact("cxx11_abi", strings_of(*symbol));
    problem.seen(extension.path, *symbol);
  }
}

bool offers(const std::vector<std::string>& versions, const std::string& version) {
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

void check_versions(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const LoadPlan& plan = *torch.libraries();
  const LoadedLibrary* library = plan.find("libstdc++.so.6");
  if (library == nullptr || library->elf.defined_versions.empty()) return;
  for (const LoadedLibrary& user : plan.libraries)
    for (const NeededVersions& needed : user.elf.needed_versions) {
      if (needed.library != "libstdc++.so.6") continue;
      for (const std::string& version : needed.versions) {
        if (offers(library->elf.defined_versions, version)) continue;
        Problem& problem = outcome.wrong("fw.libstdcxx");
        describe(machine, torch, problem);
        problem.fact("version_needed", version).fact("wanted_by", user.path).fact("library_path", library->real_path);
        problem.fact("found_by", to_string(library->way))
            .seen(library->real_path, fmt::format("{} needs {}", user.path, version));
        return;
      }
    }
}

template <class Look>
Outcome with_libraries(const Machine& machine, Look look) {
  const auto& torches = machine.software().torches();
  if (torches.empty()) return not_applicable("no PyTorch is installed");
  Outcome outcome = fine();
  bool any = false;
  for (const Torch& torch : torches) {
    if (!torch.readable()) continue;
    any = true;
    look(machine, torch, outcome);
  }
  return any ? outcome : unknown("PyTorch's libraries cannot be read");
}

}  // namespace

Outcome check_fw_abi(const Machine& machine) {
  return with_libraries(machine, check_extensions);
}
Outcome check_fw_libstdcxx(const Machine& machine) {
  return with_libraries(machine, check_versions);
}

}  // namespace gpuwright::doctor
