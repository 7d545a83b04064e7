// Any text as the user's gpus.toml, laid over a small catalogue: an error leaves the catalogue as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "catalog/architecture.h"
#include "catalog/catalog.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kBase = gpuwright::catalog::Catalog::from_toml(
                                "[[gpu]]\nid = \"x\"\nvendor = \"V\"\nname = \"N\"\nmemory_gib = 24\n", "base.toml")
                                .value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto catalog = kBase;
  const bool laid = catalog.overlay(text, "fuzz.toml").has_value();
  if (!laid && catalog.accelerators().size() != kBase.accelerators().size()) std::abort();
  for (const auto& gpu : catalog.accelerators())
    if (gpu.usable() > gpu.nominal_memory) std::abort();
  static_cast<void>(gpuwright::catalog::architectures_from_toml(text, "fuzz.toml"));
  return 0;
}
