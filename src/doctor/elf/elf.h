// What the dynamic loader reads of an ELF file: its name, what it needs, where it says that this is to be looked for,
// and which symbols and versions it has and wants. Only headers and tables are read, however large the file is.
// Format: Tool Interface Standard ELF 1.2, the System V gABI chapters 4 and 5, and, for symbol versions and
// DT_GNU_HASH, the Linux Standard Base Core 5.0, chapters 10.7 and 10.8. 32 and 64 bits, both byte orders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace gpuwright::doctor {

enum class ElfType : std::uint16_t { other = 0, relocatable = 1, executable = 2, shared = 3, core = 4 };

struct ElfSection {
  std::string name;
  std::uint32_t type = 0;
  std::int64_t offset = 0, size = 0;  // within the file; size is 0 for what occupies no bytes there
};

// The versions that it wants of one library: "libstdc++.so.6", {"GLIBCXX_3.4.30", "CXXABI_1.3.13"}.
struct NeededVersions {
  std::string library;
  std::vector<std::string> versions;
};

// Which symbols a lookup has to consider; filled by ElfFile::open.
struct ElfSymbolTable {
  std::uint64_t symbols = 0, strings = 0;  // places in the file; 0 where there is none
  std::uint64_t string_bytes = 0;
  std::uint64_t count = 0;  // 0 where nothing tells it
  std::uint64_t gnu_hash = 0, sysv_hash = 0;
};

// What a library's name, class and machine have to be for a loader to take it for another's.
struct ElfKind {
  bool is_64 = true, big_endian = false;
  std::uint16_t machine = 0;  // EM_X86_64 is 62, EM_AARCH64 183
  bool operator==(const ElfKind&) const = default;
};

// Reads from its source, which has to outlive it, in every call. Thread-safe.
class ElfFile {
 public:
  // bad_input when it is no ELF file or its tables lie outside of it. Names beyond bounds are an error, not cut.
  static Result<ElfFile> open(const ByteSource& source);

  ElfKind kind;
  ElfType type = ElfType::other;
  bool dynamic = false;  // has a dynamic section: libraries and programs that are not static
  std::string soname;    // empty where it has none
  std::string interpreter;
  std::vector<std::string> needed;          // in order
  std::vector<std::string> rpath, runpath;  // folders as written: $ORIGIN stands
  bool skips_default_folders = false;       // DF_1_NODEFLIB
  std::vector<std::string> defined_versions;
  std::vector<NeededVersions> needed_versions;
  std::vector<ElfSection> sections;  // empty where they were stripped

  const ElfSection* section(std::string_view name) const;
  const ByteSource& source() const { return *source_; }

  // Whether the file offers a symbol of that name, found through its hash table as the loader does.
  Result<bool> defines(std::string_view symbol) const;
  // Names of the symbols that it wants from others, strong ones only (nobody misses a weak one), in the table's order.
  Result<std::vector<std::string>> undefined_symbols() const;
  // All names that it offers. For tools and tests: libraries of frameworks have a hundred thousand.
  Result<std::vector<std::string>> defined_symbols() const;

 private:
  friend class ElfOpener;
  const ByteSource* source_ = nullptr;
  ElfSymbolTable table_;
};

}  // namespace gpuwright::doctor
