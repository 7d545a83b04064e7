// The functions by name, as dlsym would find them in the simulated driver.
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/host_state.h"
#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

struct Symbol {
  std::string_view name;
  void* function;
};

const Symbol kSymbols[] = {
#define GW_SYMBOL(function, arguments) {#function, reinterpret_cast<void*>(&function)},
    GW_NVML_FUNCTIONS(GW_SYMBOL)
#undef GW_SYMBOL
        {"nvmlErrorString", reinterpret_cast<void*>(&nvmlErrorString)},
};

}  // namespace

void* nvml_symbol(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSymbols), std::end(kSymbols),
                                   [name](const Symbol& symbol) { return symbol.name == name; });
  if (found == std::end(kSymbols)) return nullptr;
  const auto host = calls::installed();
  if (host != nullptr && !calls::has_symbol(host->state().scenario.driver, name)) return nullptr;
  return found->function;
}

}  // namespace gpuwright::sim
