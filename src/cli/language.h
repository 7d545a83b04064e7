// The languages that people read the help pages in, and the words of fit's answers that are always the same. What
// programs read (--json, exit codes, names) never changes with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuwright::cli {

enum class Language { english, chinese };

// "en" or "zh".
std::optional<Language> parse_language(std::string_view text);

// The text in the language, or as it is where nobody has translated it yet (chinese.cpp holds the translations).
std::string_view in_language(Language language, std::string_view english);

}  // namespace gpuwright::cli
