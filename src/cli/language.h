// The languages that people read gpuwright in. What programs read (--json, exit codes, names) never changes with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuwright::cli {

enum class Language { english, chinese };

// "en" or "zh".
std::optional<Language> parse_language(std::string_view text);

}  // namespace gpuwright::cli
