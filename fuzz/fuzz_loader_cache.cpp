// /etc/ld.so.cache from anybody: every name that the answer has stood in the bytes.
#include <cstdlib>
#include <string>

#include "doctor/elf/loader_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto libraries = gpuwright::doctor::parse_loader_cache(bytes, "ld.so.cache");
  if (!libraries) return 0;
  for (const auto& library : *libraries) {
    if (bytes.find(library.name) == std::string_view::npos || bytes.find(library.path) == std::string_view::npos) {
      std::abort();
    }
  }
  return 0;
}
