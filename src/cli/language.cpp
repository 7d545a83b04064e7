#include "cli/language.h"

#include "cli/chinese.h"

namespace gpuwright::cli {

std::optional<Language> parse_language(std::string_view text) {
  if (text == "en") return Language::english;
  if (text == "zh") return Language::chinese;
  return std::nullopt;
}

std::string_view in_language(Language language, std::string_view english) {
  if (language == Language::english) return english;
  for (const Translation& translation : chinese())
    if (translation.english == english) return translation.other;
  return english;
}

}  // namespace gpuwright::cli
