#include "device/nvml/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "sim/nvml.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::string_view kUsualName = "libnvidia-ml.so.1";

// Where to look. WSL and NixOS keep the driver's libraries outside of the linker's path.
std::vector<std::string> names_to_try(const std::string& wanted) {
  std::vector<std::string> names{wanted};
  if (wanted == kUsualName)
    names.insert(names.end(),
                 {"libnvidia-ml.so", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "/run/opengl-driver/lib/libnvidia-ml.so.1"});
  return names;
}

bool says_no_such_file(std::string_view reason) {
  return reason.find("No such file") != std::string_view::npos;
}

}  // namespace

Library::Library(const SourceOptions& options) {
  if (options.simulated != nullptr) {
    sim::install_nvml(options.simulated);
    find_functions([](const char* name) { return sim::nvml_symbol(name); });
    return;
  }
  // A captured tree is data: no code of it is run, and the drivers of this machine do not belong to it.
  if (!options.root.empty() && options.nvml_library.find('/') == std::string::npos) {
    absent_ = true;
    trouble_ = fmt::format("not asked, as {} stands for another machine", options.root);
    return;
  }
  open_file(options.nvml_library);
}

Library::Library(Lookup lookup) {
  find_functions(lookup);
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void Library::open_file(const std::string& wanted) {
  for (const std::string& name : names_to_try(wanted)) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    const char* reason = ::dlerror();
    const std::string text = reason == nullptr ? "cannot be opened" : reason;
    const bool missing = says_no_such_file(text);
    if (trouble_.empty() || (absent_ && !missing)) {
      trouble_ = missing ? fmt::format("{} is not installed", wanted) : text;
      absent_ = missing;
    }
  }
  if (handle_ == nullptr) return;
  trouble_.clear();
  absent_ = false;
  find_functions([this](const char* name) { return ::dlsym(handle_, name); });
  if (const auto simulation = reinterpret_cast<const char* (*)()>(::dlsym(handle_, "gpuwright_simulation")))
    simulation_ = simulation();
}

void Library::find_functions(const Lookup& lookup) {
#define GW_NVML_FIND(name, arguments) \
  functions_.name.pointer = reinterpret_cast<nvml::Return(*) arguments>(lookup(#name));
  GW_NVML_FUNCTIONS(GW_NVML_FIND)
#undef GW_NVML_FIND
  error_string_ = reinterpret_cast<nvml::ErrorString>(lookup("nvmlErrorString"));
  open_ = functions_.nvmlInit_v2 || functions_.nvmlInit;
  if (!open_) trouble_ = "the library has neither nvmlInit_v2 nor nvmlInit";
}

std::string Library::version_in_file_name() const {
  if (handle_ == nullptr) return {};
  Dl_info info{};
  const void* address = functions_.nvmlInit_v2 ? reinterpret_cast<const void*>(functions_.nvmlInit_v2.pointer)
                                               : reinterpret_cast<const void*>(functions_.nvmlInit.pointer);
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const std::string file = std::filesystem::canonical(info.dli_fname, error).filename().string();
  constexpr std::string_view kBefore = "libnvidia-ml.so.";
  if (error || !file.starts_with(kBefore)) return {};
  const std::string version = file.substr(kBefore.size());
  return version.find('.') == std::string::npos ? std::string() : printable(version);
}

std::string Library::text_of(nvml::Return code) const {
  const char* text = error_string_ == nullptr ? nullptr : error_string_(code);
  return text == nullptr ? fmt::format("error {}", code) : printable(text);
}

bool Library::wide_process_entries() const {
  return functions_.nvmlDeviceGetConfComputeMemSizeInfo && !functions_.nvmlDeviceGetRunningProcessDetailList;
}

}  // namespace gpuwright::device::nvidia
