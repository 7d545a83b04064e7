#include "cli/language.h"

namespace gpuwright::cli {

std::optional<Language> parse_language(std::string_view text) {
  if (text == "en") return Language::english;
  if (text == "zh") return Language::chinese;
  return std::nullopt;
}

}  // namespace gpuwright::cli
