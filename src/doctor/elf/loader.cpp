#include "doctor/elf/loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostCacheBytes = 8 << 20;
constexpr std::size_t kMostFolders = 128;  // of a search path

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

// $ORIGIN is the folder of the library itself; $LIB and $PLATFORM as on Debian and its relatives, tried as they are.
std::string expanded(std::string folder, const std::string& origin, const std::string& here) {
  for (const char* form : {"$ORIGIN", "${ORIGIN}"}) replace_all(folder, form, origin);
  for (const char* form : {"$LIB", "${LIB}"}) replace_all(folder, form, "lib");
  if (folder.empty()) return here;
  return folder.front() == '/' ? folder : fmt::format("{}/{}", here, folder);
}

std::vector<std::string> search_path(std::string_view list) {
  std::vector<std::string> folders;
  if (list.empty()) return folders;
  for (const std::string_view part : split(list, ':'))
    for (const std::string_view folder : split(part, ';')) folders.emplace_back(folder);
  if (folders.size() > kMostFolders) folders.resize(kMostFolders);
  return folders;
}

}  // namespace

std::string_view to_string(FoundBy way) {
  switch (way) {
    case FoundBy::path:
      return "path";
    case FoundBy::rpath:
      return "RPATH";
    case FoundBy::ld_library_path:
      return "LD_LIBRARY_PATH";
    case FoundBy::runpath:
      return "RUNPATH";
    case FoundBy::cache:
      return "ld.so.cache";
    case FoundBy::system:
      return "ld.so.conf";
  }
  return "path";
}

const LoadedLibrary* LoadPlan::find(std::string_view name) const {
  const auto found = std::find_if(libraries.begin(), libraries.end(), [&](const LoadedLibrary& library) {
    return library.name == name || library.elf.soname == name;
  });
  return found == libraries.end() ? nullptr : &*found;
}

Loader::Loader(const Host& host, std::vector<std::string> system_folders, LoaderOptions options)
    : host_(host), options_(std::move(options)), system_folders_(std::move(system_folders)) {
  const std::string path =
      options_.ld_library_path ? *options_.ld_library_path : host.variable("LD_LIBRARY_PATH").value_or("");
  ld_library_path_ = search_path(path);
  const auto bytes = host.text("/etc/ld.so.cache", kMostCacheBytes);
  if (!bytes) return;
  const auto cache = parse_loader_cache(*bytes, "/etc/ld.so.cache");
  if (!cache) return;
  has_cache_ = true;
  for (const CachedLibrary& library : *cache)
    if (!library.for_some_processors) cache_.emplace(library.name, library.path);
}

// Nothing when there is no file, or one that the loader passes over: no library, or of another kind.
std::optional<LoadedLibrary> Loader::open(const std::string& path, std::optional<ElfKind> kind) const {
  auto source = host_.bytes(path);
  if (!source) return std::nullopt;
  auto elf = ElfFile::open(**source);
  if (!elf || (elf->type != ElfType::shared && elf->type != ElfType::executable)) return std::nullopt;
  if (kind && elf->kind != *kind) return std::nullopt;
  LoadedLibrary library;
  library.path = path;
  library.real_path = host_.resolve(path).value_or(path);
  library.source = std::move(*source);
  library.elf = std::move(*elf);
  return library;
}

std::optional<LoadedLibrary> Loader::in_folders(const std::vector<std::string>& folders, std::string_view name,
                                                const std::string& origin, std::optional<ElfKind> kind,
                                                FoundBy way) const {
  for (std::size_t i = 0; i < folders.size() && i < kMostFolders; ++i) {
    const std::string folder = expanded(folders[i], origin, host_.working_directory());
    auto library = open(fmt::format("{}/{}", folder, name), kind);
    if (!library) continue;
    library->way = way;
    library->folder = folder;
    library->name = name;
    return library;
  }
  return std::nullopt;
}

std::optional<LoadedLibrary> Loader::in_cache(std::string_view name, std::optional<ElfKind> kind) const {
  const auto [begin, end] = cache_.equal_range(name);
  for (auto entry = begin; entry != end; ++entry) {
    auto library = open(entry->second, kind);
    if (!library) continue;
    library->way = FoundBy::cache;
    library->folder = folder_of(entry->second);
    library->name = name;
    return library;
  }
  return std::nullopt;
}

std::optional<LoadedLibrary> Loader::find(std::string_view name) const {
  if (auto found = in_folders(ld_library_path_, name, "/", std::nullopt, FoundBy::ld_library_path)) return found;
  if (auto found = in_cache(name, std::nullopt)) return found;
  return in_folders(system_folders_, name, "/", std::nullopt, FoundBy::system);
}

// One load: a queue of libraries whose needs are looked up in turn.
class Loader::Walk {
 public:
  Walk(const Loader& loader, LoadPlan& plan) : loader_(loader), plan_(plan) {}

  void run(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      auto library = loader_.open(path, std::nullopt);
      if (!library) {
        plan_.complete = false;
        continue;
      }
      library->name = path.substr(path.rfind('/') + 1);
      library->folder = folder_of(path);
      plan_.libraries.push_back(std::move(*library));
    }
    for (std::size_t i = 0; i < plan_.libraries.size(); ++i) {
      const std::vector<std::string> needed = plan_.libraries[i].elf.needed;  // the list grows meanwhile
      for (const std::string& name : needed) load(name, static_cast<int>(i));
    }
  }

 private:
  void load(const std::string& name, int by) {
    if (plan_.find(name) != nullptr) return;
    const auto known = [&](const MissingLibrary& missing) { return missing.name == name; };
    if (std::any_of(plan_.missing.begin(), plan_.missing.end(), known)) return;
    if (plan_.libraries.size() >= loader_.options_.most_libraries) {
      plan_.complete = false;
      return;
    }
    auto library = search(name, by);
    if (!library) {
      plan_.missing.push_back({name, by});
      return;
    }
    library->wanted_by = by;
    plan_.libraries.push_back(std::move(*library));
  }

  std::optional<LoadedLibrary> search(const std::string& name, int by) const {
    const LoadedLibrary& asking = plan_.libraries[static_cast<std::size_t>(by)];
    const ElfKind kind = asking.elf.kind;
    if (name.find('/') != std::string::npos) {
      auto library = loader_.open(expanded(name, origin(asking), loader_.host_.working_directory()), kind);
      if (library) library->name = name;
      return library;
    }
    if (asking.elf.runpath.empty())
      if (auto found = in_rpaths(name, by, kind)) return found;
    if (auto found = loader_.in_folders(loader_.ld_library_path_, name, "/", kind, FoundBy::ld_library_path))
      return found;
    if (auto found = loader_.in_folders(asking.elf.runpath, name, origin(asking), kind, FoundBy::runpath)) return found;
    if (auto found = loader_.in_cache(name, kind)) return found;
    if (asking.elf.skips_default_folders) return std::nullopt;
    return loader_.in_folders(loader_.system_folders_, name, "/", kind, FoundBy::system);
  }

  std::optional<LoadedLibrary> in_rpaths(const std::string& name, int by, ElfKind kind) const {
    for (; by >= 0; by = plan_.libraries[static_cast<std::size_t>(by)].wanted_by) {
      const LoadedLibrary& library = plan_.libraries[static_cast<std::size_t>(by)];
      if (!library.elf.runpath.empty()) continue;  // its RPATH does not count then
      if (auto found = loader_.in_folders(library.elf.rpath, name, origin(library), kind, FoundBy::rpath)) return found;
    }
    const LoadedLibrary& program = plan_.libraries.front();
    if (program.elf.interpreter.empty() || !program.elf.runpath.empty()) return std::nullopt;
    return loader_.in_folders(program.elf.rpath, name, origin(program), kind, FoundBy::rpath);
  }

  static std::string origin(const LoadedLibrary& library) { return folder_of(library.real_path); }

  const Loader& loader_;
  LoadPlan& plan_;
};

LoadPlan Loader::plan(const std::vector<std::string>& paths) const {
  LoadPlan plan;
  Walk(*this, plan).run(paths);
  return plan;
}

}  // namespace gpuwright::doctor
