// Any text as a filter and as the name of a GPU: it is refused or it answers, and never takes long.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "catalog/catalog.h"

namespace {

// A few rows, so that a run is short; their words are those that matter for splitting names.
constexpr std::string_view kRows = R"(
[[gpu]]
id = "rtx-4090-24gb"
vendor = "NVIDIA"
name = "GeForce RTX 4090"
architecture = "Ada Lovelace"
memory_gib = 24
fp8_tflops = 330.3
compute_capability = "8.9"
first_cuda = "11.8"
launch_price_usd = 1599
[[gpu]]
id = "rtx-4090-d-24gb"
vendor = "NVIDIA"
name = "GeForce RTX 4090 D"
memory_gib = 24
[[gpu]]
id = "mi250x-128gb"
vendor = "AMD"
name = "Instinct MI250X"
compute_capability = "gfx90a"
memory_gib = 64
devices_per_board = 2
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kCatalog = gpuwright::catalog::Catalog::from_toml(kRows, "rows.toml").value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto filter = gpuwright::catalog::Filter::parse(text))
    for (const auto& gpu : kCatalog.accelerators()) static_cast<void>(filter->matches(gpu));
  static_cast<void>(kCatalog.find(text));
  return 0;
}
