#include "doctor/nvidia_driver.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostFolders = 256, kMostEntries = 65536;
constexpr int kMostIncludes = 4;  // one within the other

bool is_version(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() >= 2 && parts.size() <= 4 && parts.front().size() >= 2 &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return !part.empty() && part.size() <= 5 && part.find_first_not_of("0123456789") == std::string_view::npos;
         });
}

void read_conf(const Host& host, const std::string& path, int depth, std::vector<std::string>& folders) {
  const auto text = host.text(path);
  if (!text || folders.size() >= kMostFolders) return;
  for (std::string_view line : split(*text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    if (line.starts_with("include ") && depth < kMostIncludes) {
      const std::string pattern(trim(line.substr(8)));
      const std::size_t star = pattern.find("/*");
      if (star == std::string::npos) {
        read_conf(host, pattern, depth + 1, folders);
        continue;
      }
      const std::string folder = pattern.substr(0, star), ending = pattern.substr(star + 2);
      for (const std::string& name : host.names(folder))
        if (name.ends_with(ending)) read_conf(host, folder + "/" + name, depth + 1, folders);
    } else if (line.starts_with('/')) {
      folders.emplace_back(line);
    }
  }
}

void add_libraries(const Host& host, const std::string& folder, const std::vector<std::string>& names,
                   std::string_view stem, std::vector<NvidiaDriver::Library>& found) {
  for (const std::string& name : names) {
    const auto version = version_in_library_name(name, stem);
    if (!version) continue;
    const std::string path = folder + "/" + name;
    if (host.link(path)) continue;
    found.push_back({path, *version});
  }
}

}  // namespace

std::optional<std::string> version_in_module_text(std::string_view text) {
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@...)"
  const std::size_t begin = text.find("NVRM version:");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  for (const std::string_view word : split(line, ' '))
    if (is_version(word)) return std::string(word);
  return std::nullopt;
}

std::optional<std::string> version_in_library_name(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return std::nullopt;
  const std::string_view rest = name.substr(stem.size());
  if (!is_version(rest)) return std::nullopt;
  return std::string(rest);
}

std::vector<std::string> read_library_folders(const Host& host) {
  std::vector<std::string> listed, folders;
  read_conf(host, "/etc/ld.so.conf", 0, listed);
  const std::string machine = host.machine().value_or("x86_64");
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) listed.emplace_back(folder);
  for (const char* folder : {"/lib/", "/usr/lib/"}) listed.push_back(folder + machine + "-linux-gnu");
  listed.emplace_back("/usr/lib/wsl/lib");
  for (const std::string& folder : listed) {
    const auto real = host.resolve(folder);
    if (real && host.is_directory(*real) && std::find(folders.begin(), folders.end(), *real) == folders.end())
      folders.push_back(*real);
  }
  return folders;
}

NvidiaDriver read_nvidia_driver(const Host& host, const std::vector<std::string>& library_folders) {
  NvidiaDriver driver;
  if (const auto text = host.text("/proc/driver/nvidia/version")) {
    driver.module_version = version_in_module_text(*text);
    driver.open = text->find("Open Kernel Module") != std::string::npos;
  }
  if (!driver.module_version) driver.module_version = host.value("/sys/module/nvidia/version");
  for (const std::string& folder : library_folders) {
    if (folder.find("/compat") != std::string::npos || folder.find("/stubs") != std::string::npos) continue;
    const auto names = host.names(folder, kMostEntries);
    add_libraries(host, folder, names, "libcuda.so.", driver.cuda_libraries);
    add_libraries(host, folder, names, "libnvidia-ml.so.", driver.nvml_libraries);
  }
  return driver;
}

}  // namespace gpuwright::doctor
