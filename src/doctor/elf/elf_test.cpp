#include "doctor/elf/elf.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <string>
#include <vector>

#include "doctor/testing/elf_builder.h"

namespace gpuwright::doctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What `readelf -dVW --dyn-syms` (binutils 2.40) tells of a library made of this description is the same;
// tests/oracle/elf_oracle.py checks that for it and for every library of the system.
TEST(Elf, TellsWhatTheLoaderReads) {
  testing::ElfSpec spec;
  spec.soname = "libflash.so.2";
  spec.needed = {"libc10.so", "libstdc++.so.6"};
  spec.runpath = {"$ORIGIN", "$ORIGIN/../torch/lib"};
  spec.exports = {"flash_forward", "flash_backward"};
  spec.imports = {"_ZN3c105ErrorC2ENS_14SourceLocationESs"};
  spec.defines_versions = {"FLASH_2.0"};
  spec.needs_versions = {{"libstdc++.so.6", {"GLIBCXX_3.4.29", "CXXABI_1.3.13"}}, {"libc.so.6", {"GLIBC_2.17"}}};
  const auto source = bytes_in_memory(testing::build_elf(spec), "libflash.so.2");
  const auto elf = ElfFile::open(*source);
  ASSERT_TRUE(elf) << elf.error().message();

  EXPECT_EQ(elf->type, ElfType::shared);
  EXPECT_EQ(elf->kind, (ElfKind{true, false, 62}));
  EXPECT_TRUE(elf->dynamic);
  EXPECT_EQ(elf->soname, spec.soname);
  EXPECT_EQ(elf->needed, spec.needed);
  EXPECT_EQ(elf->runpath, spec.runpath);
  EXPECT_THAT(elf->rpath, IsEmpty());
  EXPECT_EQ(elf->defined_versions, spec.defines_versions);
  ASSERT_EQ(elf->needed_versions.size(), 2U);
  EXPECT_EQ(elf->needed_versions[0].library, "libstdc++.so.6");
  EXPECT_THAT(elf->needed_versions[0].versions, ElementsAre("GLIBCXX_3.4.29", "CXXABI_1.3.13"));
  EXPECT_THAT(elf->needed_versions[1].versions, ElementsAre("GLIBC_2.17"));
  EXPECT_EQ(elf->undefined_symbols().value(), spec.imports);
  EXPECT_EQ(elf->defined_symbols().value(), spec.exports);
  EXPECT_TRUE(elf->defines("flash_backward").value());
  EXPECT_FALSE(elf->defines("flash_backwards").value());
  EXPECT_FALSE(elf->defines(spec.imports[0]).value());
  EXPECT_NE(elf->section(".dynsym"), nullptr);
  EXPECT_EQ(elf->section(".nv_fatbin"), nullptr);
}

std::string path_of_library(const char* symbol) {
  Dl_info info{};
  void* address = ::dlsym(RTLD_DEFAULT, symbol);
  if (address == nullptr || ::dladdr(address, &info) == 0) return {};
  return info.dli_fname;
}

// The loader of the machine that runs the test has the right answers.
TEST(Elf, FindsTheSymbolsThatTheLoaderFinds) {
  const std::string path = path_of_library("fopen");
  const auto source = open_file(path);
  ASSERT_TRUE(source) << source.error().message();
  const auto elf = ElfFile::open(**source);
  ASSERT_TRUE(elf) << elf.error().message();
  void* library = ::dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  for (const char* name : {"fopen", "printf", "qsort", "cuInit", "", "fopen64", "not_in_any_library", "malloc"}) {
    EXPECT_EQ(elf->defines(name).value(), *name != '\0' && ::dlsym(library, name) != nullptr) << name;
  }
  EXPECT_THAT(elf->defined_symbols().value(), Contains("strlen"));
  ::dlclose(library);
}

TEST(Elf, ReadsAProgram) {
  const auto source = open_file("/proc/self/exe");
  ASSERT_TRUE(source);
  const auto elf = ElfFile::open(**source);
  ASSERT_TRUE(elf) << elf.error().message();
  EXPECT_THAT(elf->interpreter, HasSubstr("ld"));
  EXPECT_THAT(elf->needed, Contains("libc.so.6"));
}

TEST(Elf, RefusesWhatIsNone) {
  for (const std::string& bytes : {std::string(), std::string("\177ELF"), std::string("/* GNU ld script */\nINPUT(x)"),
                                   std::string("\177ELF\3\1\1") + std::string(57, '\0')}) {
    const auto source = bytes_in_memory(bytes, "libx.so");
    const auto elf = ElfFile::open(*source);
    ASSERT_FALSE(elf);
    EXPECT_EQ(elf.error().code, ErrorCode::bad_input);
  }
}

TEST(Elf, SurvivesEveryCut) {
  const std::string whole = testing::build_elf_from("soname=liba.so.1 needed=libb.so.2 exports=f,g imports=h sm=80");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto source = bytes_in_memory(whole.substr(0, bytes), "liba.so");
    EXPECT_FALSE(ElfFile::open(*source)) << bytes;  // the section headers stand last
  }
}

// Each byte set to values that break offsets and counts: an answer or a refusal, and no more.
TEST(Elf, SurvivesEveryChangedByte) {
  const std::string whole = testing::build_elf_from("soname=liba.so.1 needed=libb.so.2 exports=f,g imports=h");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = value;
      const auto source = bytes_in_memory(bytes, "liba.so");
      const auto elf = ElfFile::open(*source);
      if (!elf) continue;
      (void)elf->defines("g");
      (void)elf->undefined_symbols();
      (void)elf->defined_symbols();
    }
  }
}

}  // namespace
}  // namespace gpuwright::doctor
