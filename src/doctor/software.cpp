#include "doctor/software.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostTorches = 8, kMostToolkits = 16;
// In the order in which `import torch` brings them (torch/__init__.py): its dependencies, then what the extension
// needs.
constexpr const char* kEntryLibraries[] = {"libtorch_global_deps.so", "libtorch_python.so"};
constexpr const char* kGpuLibraries[] = {"libtorch_cuda.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so"};

// "CUDA Version 10.2.89"
std::optional<std::string> version_in_text(std::string_view text) {
  constexpr std::string_view kLabel = "CUDA Version ";
  const std::size_t at = text.find(kLabel);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kLabel.size());
  const std::string_view version = text.substr(0, text.find_first_not_of("0123456789."));
  return version.empty() ? std::nullopt : std::optional(std::string(version));
}

// {"cuda": {"name": "CUDA SDK", "version": "12.6.3"}, ...}
std::optional<std::string> version_in_json(std::string_view text) {
  const auto json = parse_json(text, "version.json");
  if (!json || !json->is_object()) return std::nullopt;
  const Json* cuda = json->find("cuda");
  const Json* version = cuda != nullptr && cuda->is_object() ? cuda->find("version") : nullptr;
  if (version == nullptr || !version->as_string()) return std::nullopt;
  return std::string(*version->as_string());
}

// "#define CUDA_VERSION 12060"
std::optional<std::string> version_in_header(std::string_view text) {
  constexpr std::string_view kLabel = "#define CUDA_VERSION ";
  const std::size_t at = text.find(kLabel);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kLabel.size());
  const auto number = to_integer(trim(text.substr(0, text.find('\n'))));
  if (!number || *number < 1000 || *number > 999999) return std::nullopt;
  return fmt::format("{}.{}", *number / 1000, *number % 1000 / 10);
}

}  // namespace

std::optional<std::string> toolkit_version(const Host& host, const std::string& folder) {
  if (const auto text = host.text(folder + "/version.json"))
    if (auto version = version_in_json(*text)) return version;
  if (const auto text = host.text(folder + "/version.txt"))
    if (auto version = version_in_text(*text)) return version;
  for (const char* include : {"/include/cuda.h", "/targets/x86_64-linux/include/cuda.h"})
    if (const auto text = host.text(folder + include))
      if (auto version = version_in_header(*text)) return version;
  return std::nullopt;
}

Torch::Torch(const Host& host, const std::vector<std::string>& library_folders, const PythonEnvironment& environment,
             TorchBuild build)
    : host_(&host), library_folders_(&library_folders), environment_(&environment), build_(std::move(build)) {}

std::optional<LoadPlan> Torch::plan(const std::optional<std::string>& ld_library_path) const {
  std::vector<std::string> paths;
  // The interpreter is loaded first: conda's brings its own libstdc++.
  for (const char* name : {"python3", "python"}) {
    const std::string interpreter = fmt::format("{}/bin/{}", environment_->prefix, name);
    const auto source = host_->bytes(interpreter);
    if (paths.empty() && source && ElfFile::open(**source)) paths.push_back(interpreter);
  }
  const std::size_t before = paths.size();
  for (const char* name : kEntryLibraries)
    if (host_->exists(build_.library(name))) paths.push_back(build_.library(name));
  if (paths.size() == before) return std::nullopt;
  const Loader loader(*host_, *library_folders_, {ld_library_path, 512});
  return loader.plan(paths);
}

const std::optional<LoadPlan>& Torch::libraries() const {
  if (!libraries_) libraries_ = plan(std::nullopt);
  return *libraries_;
}

const std::optional<LoadPlan>& Torch::libraries_by_themselves() const {
  if (!by_themselves_) {
    by_themselves_.emplace();
    if (!host_->variable("LD_LIBRARY_PATH").value_or("").empty()) *by_themselves_ = plan(std::string());
  }
  return *by_themselves_;
}

const std::optional<Fatbins>& Torch::gpu_code() const {
  if (gpu_code_) return *gpu_code_;
  gpu_code_.emplace();
  for (const char* name : kGpuLibraries) {
    const auto source = host_->bytes(build_.library(name));
    if (!source) continue;
    const auto elf = ElfFile::open(**source);
    if (!elf) continue;
    auto code = read_fatbins(*elf);
    if (!code || code->empty()) continue;
    *gpu_code_ = std::move(*code);
    break;
  }
  return *gpu_code_;
}

std::vector<const LoadedLibrary*> Torch::own_libraries() const {
  std::vector<const LoadedLibrary*> own;
  if (!libraries()) return own;
  for (const LoadedLibrary& library : libraries()->libraries)
    if (library.path.starts_with(build_.folder + "/lib/")) own.push_back(&library);
  return own;
}

struct Software::Found {
  std::optional<std::vector<PythonEnvironment>> environments;
  std::optional<std::vector<Torch>> torches;
  std::optional<std::vector<Toolkit>> toolkits;
  std::optional<Loader> loader;
};

Software::Software(const Host& host, const std::vector<std::string>& library_folders)
    : host_(host), library_folders_(library_folders), found_(std::make_unique<Found>()) {}
Software::~Software() = default;

const std::vector<PythonEnvironment>& Software::environments() const {
  if (!found_->environments) found_->environments = python_environments(host_);
  return *found_->environments;
}

const std::vector<Torch>& Software::torches() const {
  if (found_->torches) return *found_->torches;
  found_->torches.emplace();
  for (const PythonEnvironment* environment : environments_with(environments(), "torch")) {
    if (found_->torches->size() >= kMostTorches) break;
    if (auto build = read_torch(host_, *environment))
      found_->torches->emplace_back(host_, library_folders_, *environment, std::move(*build));
  }
  return *found_->torches;
}

const std::vector<Toolkit>& Software::toolkits() const {
  if (found_->toolkits) return *found_->toolkits;
  std::vector<Toolkit>& toolkits = found_->toolkits.emplace();
  std::vector<std::string> known;
  const auto add = [&](const std::string& folder, std::string_view found_by) {
    const auto real = host_.resolve(folder);
    if (!real || toolkits.size() >= kMostToolkits) return;
    if (!host_.exists(*real + "/bin/nvcc") && !toolkit_version(host_, *real)) return;
    if (std::find(known.begin(), known.end(), *real) != known.end()) return;
    known.push_back(*real);
    toolkits.push_back({folder, toolkit_version(host_, *real).value_or(""), std::string(found_by)});
  };
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const auto folder = host_.variable(name); folder && folder->starts_with('/')) add(*folder, name);
  const std::string path = host_.variable("PATH").value_or("");
  for (const std::string_view folder : split(path, ':')) {
    if (!folder.ends_with("/bin")) continue;
    const auto compiler = host_.resolve(fmt::format("{}/nvcc", folder));
    if (!compiler || !compiler->ends_with("/bin/nvcc")) continue;
    // Debian's package has its compiler in /usr/bin and its version in /usr/lib/cuda.
    const std::string home = compiler->substr(0, compiler->size() - std::string_view("/bin/nvcc").size());
    add(home == "/usr" ? "/usr/lib/cuda" : home, "nvcc on the PATH");
  }
  add("/usr/local/cuda", "/usr/local/cuda");
  for (const std::string& name : host_.names("/usr/local"))
    if (name.starts_with("cuda-")) add("/usr/local/" + name, "/usr/local");
  return toolkits;
}

const Loader& Software::loader() const {
  if (!found_->loader) found_->loader.emplace(host_, library_folders_);
  return *found_->loader;
}

}  // namespace gpuwright::doctor
