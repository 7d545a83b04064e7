// GPU code from anybody: the walk ends, counts no more images than the bytes can hold, and their names read back.
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "doctor/fatbin/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright::doctor;  // NOLINT: a fuzz target of one file
  const auto source = gpuwright::bytes_in_memory({reinterpret_cast<const char*>(data), size}, "fuzz.fatbin");
  const auto found = read_fatbins(*source, 0, source->size());
  if (!found) return 0;
  std::int64_t images = 0;
  for (const auto& [code, count] : found->codes) {
    images += count;
    if (count < 1 || gpu_code_named(to_string(code)) != code) std::abort();
    if (!runs_on(code, code.sm)) std::abort();
  }
  if (images * 64 > static_cast<std::int64_t>(size)) std::abort();
  for (const int gpu : {50, 75, 87, 90, 121}) (void)found->coverage(gpu);
  return 0;
}
