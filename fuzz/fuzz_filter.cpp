// Any text as a filter: it is refused or it answers for every GPU, and never takes long.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "catalog/catalog.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kCatalog = gpuwright::catalog::Catalog::load().value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto filter = gpuwright::catalog::Filter::parse(text))
    for (const auto& gpu : kCatalog.accelerators()) static_cast<void>(filter->matches(gpu));
  static_cast<void>(kCatalog.find(text));
  return 0;
}
