// Prints what gpuwright reads of ELF files, a fact a line, for elf_oracle.py: "soname libx.so.1", "needed libc.so.6",
// "defined printf", "undefined malloc", "image sm_80 3". Asks of each defined symbol whether the hash table has it,
// too.
#include <fmt/format.h>

#include "base/file.h"
#include "doctor/elf/elf.h"
#include "doctor/fatbin/fatbin.h"

namespace {

using gpuwright::Status;

Status print_symbols(const gpuwright::doctor::ElfFile& elf) {
  for (const std::string& name : GW_TRY(elf.undefined_symbols())) fmt::print("undefined {}\n", name);
  for (const std::string& name : GW_TRY(elf.defined_symbols())) {
    fmt::print("defined {}\n", name);
    if (!GW_TRY(elf.defines(name))) fmt::print("not in the hash table: {}\n", name);
  }
  return {};
}

Status print_file(const std::string& path) {
  const auto source = GW_TRY(gpuwright::open_file(path));
  const auto elf = GW_TRY(gpuwright::doctor::ElfFile::open(*source));
  fmt::print("machine {}\n", elf.kind.machine);
  if (!elf.soname.empty()) fmt::print("soname {}\n", elf.soname);
  for (const std::string& name : elf.needed) fmt::print("needed {}\n", name);
  for (const std::string& folder : elf.rpath) fmt::print("rpath {}\n", folder);
  for (const std::string& folder : elf.runpath) fmt::print("runpath {}\n", folder);
  for (const std::string& version : elf.defined_versions) fmt::print("version {}\n", version);
  for (const auto& needed : elf.needed_versions) {
    for (const std::string& version : needed.versions) fmt::print("wants {} {}\n", needed.library, version);
  }
  for (const auto& section : elf.sections) fmt::print("section {} {}\n", section.name, section.size);
  GW_TRY(print_symbols(elf));
  const auto fatbins = GW_TRY(gpuwright::doctor::read_fatbins(elf, {1 << 20, 1 << 20}));
  for (const auto& [code, count] : fatbins.codes) fmt::print("image {} {}\n", to_string(code), count);
  return {};
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    fmt::print("file {}\n", words[i]);
    if (const Status status = print_file(words[i]); !status) fmt::print("refused {}\n", status.error().message());
  }
  return 0;
}
