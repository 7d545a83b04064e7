// JSON from outside: parsed within bounds, and whatever was parsed is written as JSON that parses again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = gpuwright::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!json) return 0;
  const auto again = gpuwright::parse_json(json->dump(), "fuzz");
  if (!again || again->dump() != json->dump()) std::abort();
  return 0;
}
