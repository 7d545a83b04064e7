// The help pages in Chinese: English text as the commands declare it, and what stands in its place.
#pragma once

#include <span>
#include <string_view>

namespace gpuwright::cli {

struct Translation {
  std::string_view english;
  std::string_view other;
};

std::span<const Translation> chinese();

}  // namespace gpuwright::cli
