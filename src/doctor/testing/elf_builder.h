// Test help: small ELF libraries by description, with the tables that a loader reads and no code.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/elf/elf.h"
#include "doctor/fatbin/fatbin.h"

namespace gpuwright::doctor::testing {

struct ElfSpec {
  std::string soname;
  std::vector<std::string> needed, runpath, rpath;
  std::vector<std::string> exports, imports;
  std::vector<std::string> defines_versions;
  std::vector<NeededVersions> needs_versions;
  std::vector<std::pair<std::string, std::string>> sections;  // name, bytes
  std::uint16_t machine = 62;
};
std::string build_elf(const ElfSpec& spec);

// A container with an image of a few bytes for each code.
std::string build_fatbin(const std::vector<GpuCode>& codes);

// "soname=libx.so.1 needed=liba.so.2,libb.so.3 runpath=$ORIGIN exports=f,g imports=h sm=80,90a ptx=90
//  versions=GLIBCXX_3.4.29 wants=libstdc++.so.6:GLIBCXX_3.4.30 containers=3": words in any order.
std::string build_elf_from(std::string_view words);

}  // namespace gpuwright::doctor::testing
