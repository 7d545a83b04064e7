// Which files a program gets when it loads a library: what ld.so would do, without running anything.
//
// For a name without a slash glibc's loader (ld.so(8); glibc 2.36 elf/dl-load.c, _dl_map_object) takes what is loaded
// already under that name or soname, else the first file of its kind (class, byte order, machine) in
//   1. the RPATH of the library that wants it, of those that loaded that one, and of the program, where the first has
//   no
//      RUNPATH,
//   2. LD_LIBRARY_PATH,
//   3. the RUNPATH of the library that wants it,
//   4. /etc/ld.so.cache,
//   5. the system's own folders, unless the library was linked with -z nodefaultlib.
// Not looked at: LD_PRELOAD, LD_AUDIT, and the folders glibc-hwcaps, which hold the same library for newer processors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "doctor/elf/elf.h"
#include "doctor/elf/loader_cache.h"
#include "doctor/host.h"

namespace gpuwright::doctor {

enum class FoundBy : std::uint8_t { path, rpath, ld_library_path, runpath, cache, system };
std::string_view to_string(FoundBy way);  // "LD_LIBRARY_PATH"

struct LoadedLibrary {
  std::string name;       // as it was asked for
  std::string path;       // as it was found, links not resolved
  std::string real_path;  // links resolved
  FoundBy way = FoundBy::path;
  std::string folder;  // the entry of the search path that had it
  int wanted_by = -1;  // index into LoadPlan::libraries; -1: the first
  std::unique_ptr<ByteSource> source;
  ElfFile elf;
};

struct MissingLibrary {
  std::string name;
  int wanted_by = -1;
};

struct LoadPlan {
  std::vector<LoadedLibrary> libraries;  // in the loader's order
  std::vector<MissingLibrary> missing;
  bool complete = true;                                    // false: bounds were reached, or a library could not be read
  const LoadedLibrary* find(std::string_view name) const;  // by the name asked for, or soname
};

struct LoaderOptions {
  // Nothing: the host's variable. Checks ask what would be without it, too.
  std::optional<std::string> ld_library_path;
  std::size_t most_libraries = 256;
};

// Not thread-safe. The host has to outlive it.
class Loader {
 public:
  Loader(const Host& host, std::vector<std::string> system_folders, LoaderOptions options = {});

  // What loading these files brings with it, breadth first. Files loaded before are given as the first paths: a Python
  // package that has loaded its own copies by path keeps them.
  LoadPlan plan(const std::vector<std::string>& paths) const;
  // The file for a name that no library asks for: what a program's dlopen gets.
  std::optional<LoadedLibrary> find(std::string_view name) const;

  const std::vector<std::string>& ld_library_path() const { return ld_library_path_; }
  // Whether the answers rest on /etc/ld.so.cache, as on a live host, or on its configuration.
  bool has_cache() const { return has_cache_; }

 private:
  class Walk;
  std::optional<LoadedLibrary> open(const std::string& path, std::optional<ElfKind> kind) const;
  std::optional<LoadedLibrary> in_folders(const std::vector<std::string>& folders, std::string_view name,
                                          const std::string& origin, std::optional<ElfKind> kind, FoundBy way) const;
  std::optional<LoadedLibrary> in_cache(std::string_view name, std::optional<ElfKind> kind) const;

  const Host& host_;
  LoaderOptions options_;
  std::vector<std::string> ld_library_path_, system_folders_;
  bool has_cache_ = false;
  std::multimap<std::string, std::string, std::less<>> cache_;  // name, path
};

}  // namespace gpuwright::doctor
