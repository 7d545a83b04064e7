#include "doctor/python/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostEnvironments = 48;
constexpr std::size_t kMostCandidates = 256;  // folders looked at
constexpr std::size_t kMostPackages = 8192;
constexpr std::size_t kMostListed = 64;  // of conda's and pyenv's folders

// "3.11" of "python3.11"; nothing for "python3" and others.
std::optional<std::string> version_of_folder(std::string_view name) {
  constexpr std::string_view kStem = "python";
  if (!name.starts_with(kStem)) return std::nullopt;
  name.remove_prefix(kStem.size());
  const std::size_t dot = name.find('.');
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.size() <= 3 && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (dot == std::string_view::npos || !digits(name.substr(0, dot)) || !digits(name.substr(dot + 1))) {
    return std::nullopt;
  }
  return std::string(name);
}

class Search {
 public:
  explicit Search(const Host& host) : host_(host), home_(host.variable("HOME").value_or("")) {
    const std::string path = host.variable("PYTHONPATH").value_or("");
    for (const std::string_view folder : split(path, ':'))
      if (!folder.empty()) python_path_.emplace_back(folder);
  }

  std::vector<PythonEnvironment> run() {
    const std::string active = active_prefix();
    if (!active.empty()) add(active, true);
    for (const std::string& prefix : candidates()) add(prefix, false);
    return std::move(found_);
  }

 private:
  struct VenvConfig {
    std::string base_prefix = "/usr";
    bool with_system_packages = false;
  };

  std::string active_prefix() const;
  std::string chosen_by_pyenv(std::string_view folder) const;
  std::vector<std::string> candidates() const;
  void add_children(const std::string& folder, std::vector<std::string>& into) const;
  void add(const std::string& prefix, bool active);
  void add_version(const std::string& prefix, const std::string& version, bool active);
  std::vector<std::string> sites_of(const std::string& prefix, const std::string& version,
                                    PythonEnvironment::Kind kind) const;
  void add_prefix(const std::string& prefix, const std::string& version, std::vector<std::string>& sites) const;
  VenvConfig read_config(const std::string& prefix) const;
  void read_packages(PythonEnvironment& environment) const;
  PythonEnvironment::Kind kind_of(const std::string& prefix) const;
  std::vector<std::string> versions_in(const std::string& prefix) const;

  const Host& host_;
  std::string home_;
  std::vector<std::string> python_path_;
  std::vector<std::string> prefixes_;  // looked at, links resolved
  std::vector<PythonEnvironment> found_;
};

// What `python3` means there: the first of PATH. A virtual environment's is a link and stays one here.
std::string Search::active_prefix() const {
  const std::string path = host_.variable("PATH").value_or("");
  for (const std::string_view folder : split(path, ':')) {
    if (!folder.starts_with('/')) continue;
    for (const char* name : {"python3", "python"}) {
      if (!host_.exists(fmt::format("{}/{}", folder, name))) continue;
      if (folder.ends_with("/bin")) return std::string(folder.substr(0, folder.size() - 4));
      if (std::string chosen = chosen_by_pyenv(folder); !chosen.empty()) return chosen;
    }
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto prefix = host_.variable(name); prefix && prefix->starts_with('/')) return *prefix;
  return {};
}

// pyenv puts scripts on the PATH that start the version chosen by a variable or a file.
std::string Search::chosen_by_pyenv(std::string_view folder) const {
  constexpr std::string_view kShims = "/shims";
  if (!folder.ends_with(kShims)) return {};
  const std::string root(folder.substr(0, folder.size() - kShims.size()));
  const std::string chosen = host_.variable("PYENV_VERSION").value_or(host_.value(root + "/version").value_or(""));
  const std::string_view first = trim(std::string_view(chosen).substr(0, chosen.find_first_of(":\n")));
  if (first.empty() || first.find('/') != std::string_view::npos || first == "system") return {};
  return fmt::format("{}/versions/{}", root, first);
}

void Search::add_children(const std::string& folder, std::vector<std::string>& into) const {
  for (const std::string& name : host_.names(folder, kMostListed)) into.push_back(folder + "/" + name);
}

std::vector<std::string> Search::candidates() const {
  std::vector<std::string> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto prefix = host_.variable(name)) prefixes.push_back(*prefix);
  const std::string here = host_.working_directory() == "/" ? "" : host_.working_directory();
  for (const char* name : {".venv", "venv", "env"}) prefixes.push_back(here + "/" + name);
  for (const char* prefix : {"/usr", "/usr/local", "/opt/venv", "/venv", "/opt/conda", "/opt/python"})
    prefixes.emplace_back(prefix);
  std::vector<std::string> roots = {"/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3"};
  if (!home_.empty()) {
    for (const char* name : {".venv", "venv", "env"}) prefixes.push_back(home_ + "/" + name);
    for (const char* name : {"miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda"})
      roots.push_back(home_ + "/" + name);
    add_children(home_ + "/.pyenv/versions", prefixes);
    add_children(home_ + "/.virtualenvs", prefixes);
    const std::string listed = host_.text(home_ + "/.conda/environments.txt").value_or("");
    for (const std::string_view line : split(listed, '\n'))
      if (line.starts_with('/')) prefixes.emplace_back(trim(line));
  }
  for (const std::string& root : roots) {
    prefixes.push_back(root);
    add_children(root + "/envs", prefixes);
  }
  if (prefixes.size() > kMostCandidates) prefixes.resize(kMostCandidates);
  return prefixes;
}

PythonEnvironment::Kind Search::kind_of(const std::string& prefix) const {
  using Kind = PythonEnvironment::Kind;
  if (prefix == "/usr") return Kind::system;
  if (host_.exists(prefix + "/pyvenv.cfg")) return Kind::virtual_environment;
  return host_.is_directory(prefix + "/conda-meta") ? Kind::conda : Kind::other;
}

std::vector<std::string> Search::versions_in(const std::string& prefix) const {
  std::vector<std::string> versions;
  for (const char* lib : {"lib", "lib64"}) {
    for (const std::string& name : host_.names(fmt::format("{}/{}", prefix, lib), 65536)) {
      const auto version = version_of_folder(name);
      if (version && std::find(versions.begin(), versions.end(), *version) == versions.end())
        versions.push_back(*version);
    }
  }
  return versions;
}

// In Python's own order (site.py): what the user installed, then the packages of the prefix. Debian has its own
// folders.
void Search::add_prefix(const std::string& prefix, const std::string& version, std::vector<std::string>& sites) const {
  const std::string python = "/python" + version;
  if (!home_.empty()) sites.push_back(fmt::format("{}/.local/lib{}/site-packages", home_, python));
  if (prefix == "/usr") {
    sites.push_back(fmt::format("/usr/local/lib{}/dist-packages", python));
    sites.emplace_back("/usr/lib/python3/dist-packages");
  }
  for (const char* lib : {"lib", "lib64"}) {
    sites.push_back(fmt::format("{}/{}{}/site-packages", prefix, lib, python));
    if (prefix == "/usr") sites.push_back(fmt::format("/usr/local/{}{}/site-packages", lib, python));
  }
}

std::vector<std::string> Search::sites_of(const std::string& prefix, const std::string& version,
                                          PythonEnvironment::Kind kind) const {
  std::vector<std::string> listed = python_path_, base;
  add_prefix(prefix, version, base);
  if (kind == PythonEnvironment::Kind::virtual_environment) {
    if (!home_.empty()) base.erase(base.begin());  // no user's folder here
    const VenvConfig config = read_config(prefix);
    if (config.with_system_packages) add_prefix(config.base_prefix, version, base);
  }
  listed.insert(listed.end(), base.begin(), base.end());
  std::vector<std::string> sites;
  for (const std::string& site : listed)
    if (host_.is_directory(site) && std::find(sites.begin(), sites.end(), site) == sites.end()) sites.push_back(site);
  return sites;
}

// pyvenv.cfg: "home = /usr/bin", "include-system-site-packages = true".
Search::VenvConfig Search::read_config(const std::string& prefix) const {
  VenvConfig config;
  const std::string text = host_.text(prefix + "/pyvenv.cfg").value_or("");
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name = lower(trim(line.substr(0, equals)));
    const std::string_view value = trim(line.substr(equals + 1));
    if (name == "include-system-site-packages") config.with_system_packages = lower(value) == "true";
    if (name == "home" && value.ends_with("/bin")) config.base_prefix = value.substr(0, value.size() - 4);
  }
  return config;
}

void Search::read_packages(PythonEnvironment& environment) const {
  for (const std::string& site : environment.sites)
    for (const std::string& entry : host_.names(site, kMostPackages))
      if (auto package = package_named(site, entry)) {
        const std::string name = package->name;
        environment.packages.emplace(name, std::move(*package));
      }
}

void Search::add(const std::string& prefix, bool active) {
  if (found_.size() >= kMostEnvironments) return;
  const auto real = host_.resolve(prefix);
  if (!real || std::find(prefixes_.begin(), prefixes_.end(), *real) != prefixes_.end()) return;
  prefixes_.push_back(*real);
  for (const std::string& version : versions_in(prefix)) add_version(prefix, version, active);
}

void Search::add_version(const std::string& prefix, const std::string& version, bool active) {
  PythonEnvironment environment;
  environment.kind = kind_of(prefix);
  // Packages under /usr/local belong to the system's Python unless another one stands there.
  if (prefix == "/usr/local" && !host_.exists(fmt::format("/usr/local/bin/python{}", version))) return;
  environment.prefix = prefix;
  environment.version = version;
  environment.active = active;
  environment.sites = sites_of(prefix, version, environment.kind);
  read_packages(environment);
  if (!environment.packages.empty()) found_.push_back(std::move(environment));
}

}  // namespace

std::string_view to_string(PythonEnvironment::Kind kind) {
  switch (kind) {
    case PythonEnvironment::Kind::system:
      return "system";
    case PythonEnvironment::Kind::virtual_environment:
      return "virtual environment";
    case PythonEnvironment::Kind::conda:
      return "conda";
    case PythonEnvironment::Kind::other:
      return "other";
  }
  return "other";
}

const Package* PythonEnvironment::find(std::string_view name) const {
  const auto found = packages.find(name);
  return found == packages.end() ? nullptr : &found->second;
}

std::optional<std::string> PythonEnvironment::module_folder(const Host& host, std::string_view name) const {
  for (const std::string& site : sites) {
    const std::string folder = fmt::format("{}/{}", site, name);
    if (host.is_directory(folder)) return folder;
  }
  return std::nullopt;
}

std::string PythonEnvironment::python() const {
  return kind == Kind::system ? "python3" : fmt::format("{}/bin/python", prefix);
}

std::vector<PythonEnvironment> python_environments(const Host& host) {
  return Search(host).run();
}

std::vector<const PythonEnvironment*> environments_with(const std::vector<PythonEnvironment>& all,
                                                        std::string_view package) {
  std::vector<const PythonEnvironment*> having;
  for (const PythonEnvironment& environment : all) {
    if (environment.find(package) == nullptr) continue;
    if (environment.active) return {&environment};
    having.push_back(&environment);
  }
  return having;
}

}  // namespace gpuwright::doctor
