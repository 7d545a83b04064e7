#include "doctor/inventory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/software.h"

namespace gpuwright::doctor {
namespace {

// Parts of names of packages that are listed; the first line is collect_env's own choice.
constexpr const char* kPackages[] = {
    "torch",        "numpy",      "triton", "optree",   "onnx",       "nvidia-",      "mypy", "flake8",
    "transformers", "vllm",       "sglang", "xformers", "flash-attn", "bitsandbytes", "jax",  "tensorflow",
    "deepspeed",    "accelerate", "cupy",   "peft",     "trl",        "datasets"};
constexpr const char* kVariables[] = {"CUDA_HOME",
                                      "CUDA_PATH",
                                      "CUDA_VISIBLE_DEVICES",
                                      "CUDA_DEVICE_ORDER",
                                      "CUDA_MODULE_LOADING",
                                      "CUDA_LAUNCH_BLOCKING",
                                      "LD_LIBRARY_PATH",
                                      "PYTORCH_CUDA_ALLOC_CONF",
                                      "PYTORCH_ALLOC_CONF",
                                      "PYTORCH_HIP_ALLOC_CONF",
                                      "HIP_VISIBLE_DEVICES",
                                      "ROCR_VISIBLE_DEVICES",
                                      "HSA_OVERRIDE_GFX_VERSION",
                                      "NCCL_DEBUG",
                                      "NCCL_P2P_DISABLE",
                                      "NCCL_SOCKET_IFNAME",
                                      "TORCH_CUDA_ARCH_LIST",
                                      "XLA_PYTHON_CLIENT_PREALLOCATE"};

bool is_listed(std::string_view name) {
  return std::any_of(std::begin(kPackages), std::end(kPackages),
                     [&](const char* part) { return name.find(part) != std::string_view::npos; });
}

void read_processor(const Host& host, Inventory& inventory) {
  const auto text = host.text("/proc/cpuinfo", 4 << 20);
  if (!text) return;
  int count = 0;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with("processor")) ++count;
    const std::size_t colon = line.find(':');
    if (!inventory.cpu && line.starts_with("model name") && colon != std::string_view::npos)
      inventory.cpu = trim(line.substr(colon + 1));
  }
  if (count > 0) inventory.processors = count;
}

// "GLIBC_2.36" is the newest that glibc 2.36 offers.
std::optional<std::string> libc_version(const Loader& loader) {
  const auto libc = loader.find("libc.so.6");
  if (!libc) return std::nullopt;
  constexpr std::string_view kBegin = "GLIBC_";
  std::string newest;
  for (const std::string& version : libc->elf.defined_versions) {
    const std::string_view number = std::string_view(version).substr(std::min(kBegin.size(), version.size()));
    if (!version.starts_with(kBegin) || number.find_first_not_of("0123456789.") != std::string_view::npos) continue;
    if (newest.empty() || compare_versions(number, newest) > 0) newest = number;
  }
  return newest.empty() ? std::nullopt : std::optional("glibc " + newest);
}

// /usr/bin/clang leads to ../lib/llvm-14/bin/clang, or to clang-14.
std::optional<std::string> clang_version(const Host& host) {
  const auto real = host.resolve("/usr/bin/clang");
  if (!real) return std::nullopt;
  for (const char* begin : {"/llvm-", "/clang-"}) {
    const std::size_t at = real->rfind(begin);
    if (at == std::string::npos) continue;
    const std::string number = real->substr(at + std::string_view(begin).size());
    const std::string version = number.substr(0, number.find_first_not_of("0123456789"));
    if (!version.empty()) return version;
  }
  return std::nullopt;
}

std::optional<std::string> cmake_version(const Host& host) {
  for (const char* folder : {"/usr/share", "/usr/local/share"})
    for (const std::string& name : host.names(folder, 16384))
      if (name.starts_with("cmake-") && name.size() > 6 && name[6] >= '0' && name[6] <= '9') return name.substr(6);
  return std::nullopt;
}

// The patch number, which folder names lack: pyvenv.cfg ("version = 3.11.7", virtualenv: version_info), or the header.
std::string python_version(const Host& host, const PythonEnvironment& environment) {
  const std::string config = host.text(environment.prefix + "/pyvenv.cfg").value_or("");
  for (const std::string_view line : split(config, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || !line.starts_with("version")) continue;
    const std::string_view value = trim(line.substr(equals + 1));
    const std::string_view number = value.substr(0, value.find_first_not_of("0123456789."));
    if (number.starts_with(environment.version + ".")) return std::string(trim(number));
  }
  const std::string header =
      host.text(fmt::format("{}/include/python{}/patchlevel.h", environment.prefix, environment.version)).value_or("");
  for (const std::string_view line : split(header, '\n')) {
    const std::size_t quote = line.find('"');
    if (!line.starts_with("#define PY_VERSION ") || quote == std::string_view::npos) continue;
    const std::string_view value = line.substr(quote + 1);
    return std::string(value.substr(0, value.find('"')));
  }
  return environment.version;
}

InstalledPython describe(const Host& host, const PythonEnvironment& environment) {
  InstalledPython python;
  python.prefix = environment.prefix;
  python.version = python_version(host, environment);
  python.kind = environment.kind;
  python.active = environment.active;
  for (const auto& [name, package] : environment.packages)
    if (is_listed(name)) python.packages.push_back(package);
  if (const auto torch = read_torch(host, environment)) {
    python.torch = torch->version;
    python.torch_cuda = torch->cuda;
    python.torch_hip = torch->hip;
  }
  return python;
}

std::vector<std::string> cudnn_libraries(const Machine& machine) {
  std::vector<std::string> found;
  for (const std::string& folder : machine.library_folders())
    for (const std::string& name : machine.host().names(folder, 65536)) {
      if (!name.starts_with("libcudnn")) continue;
      const auto real = machine.host().resolve(folder + "/" + name);
      if (real && std::find(found.begin(), found.end(), *real) == found.end() && found.size() < 32)
        found.push_back(*real);
    }
  return found;
}

}  // namespace

std::optional<HostCompiler> host_compiler(const Host& host) {
  for (const char* path : {"/usr/bin/g++", "/usr/bin/gcc"}) {
    const auto name = host.link_name(path);
    if (!name) continue;
    const std::size_t dash = name->rfind('-');
    const auto major = dash == std::string::npos ? std::nullopt : to_integer(name->substr(dash + 1));
    if (major && *major > 0 && *major < 100) return HostCompiler{static_cast<int>(*major), path};
  }
  if (!host.exists("/usr/bin/g++") && !host.exists("/usr/bin/gcc")) return std::nullopt;
  HostCompiler newest;
  for (const std::string& triplet : host.names("/usr/lib/gcc"))
    for (const std::string& version : host.names("/usr/lib/gcc/" + triplet)) {
      const auto major = to_integer(version.substr(0, version.find('.')));
      if (major && *major > newest.major && *major < 100)
        newest = {static_cast<int>(*major), fmt::format("/usr/lib/gcc/{}/{}", triplet, version)};
    }
  return newest.major > 0 ? std::optional(newest) : std::nullopt;
}

Inventory read_inventory(const Machine& machine) {
  const Host& host = machine.host();
  Inventory inventory;
  read_processor(host, inventory);
  inventory.libc = libc_version(machine.software().loader());
  if (const auto compiler = host_compiler(host)) inventory.gcc = fmt::format("{}", compiler->major);
  inventory.clang = clang_version(host);
  inventory.cmake = cmake_version(host);
  inventory.rocm = host.value("/opt/rocm/.info/version");
  for (const Toolkit& toolkit : machine.software().toolkits())
    inventory.cuda_toolkits.emplace_back(toolkit.folder, toolkit.version);
  inventory.cudnn = cudnn_libraries(machine);
  for (const char* name : kVariables)
    if (const auto value = host.variable(name)) inventory.variables.emplace_back(name, *value);
  for (const PythonEnvironment& environment : machine.software().environments())
    inventory.pythons.push_back(describe(host, environment));
  return inventory;
}

}  // namespace gpuwright::doctor
