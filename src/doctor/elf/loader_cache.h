// /etc/ld.so.cache: which file stands for which name, as ldconfig left it. Format: glibc 2.36,
// sysdeps/generic/dl-cache.h
// ("glibc-ld.so.cache1.1", and the older "ld.so-1.7.0" with the newer one behind it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::doctor {

struct CachedLibrary {
  std::string name, path;
  std::uint32_t flags = 0;           // 0x0303: a library of x86-64
  bool for_some_processors = false;  // in a folder glibc-hwcaps/...
};

// In the cache's order, which is that of preference. bad_input when it is none or damaged.
Result<std::vector<CachedLibrary>> parse_loader_cache(std::string_view bytes, const std::string& name);

}  // namespace gpuwright::doctor
