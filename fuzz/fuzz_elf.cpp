// Libraries from anybody: ElfFile answers or refuses, and what it answers is bounded by the file.
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "doctor/elf/elf.h"
#include "doctor/fatbin/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gpuwright::doctor::ElfFile;
  const auto source = gpuwright::bytes_in_memory({reinterpret_cast<const char*>(data), size}, "libfuzz.so");
  const auto elf = ElfFile::open(*source);
  if (!elf) {
    if (elf.error().what.empty()) std::abort();
    return 0;
  }
  const auto defined = elf->defined_symbols();
  (void)elf->undefined_symbols();
  (void)elf->defines("_ZN3c105ErrorC2ENS_14SourceLocationESs");
  if (defined && !defined->empty()) (void)elf->defines(defined->front());
  const auto fatbins = gpuwright::doctor::read_fatbins(*elf);
  if (fatbins && fatbins->usual().size() > fatbins->codes.size()) std::abort();
  return 0;
}
