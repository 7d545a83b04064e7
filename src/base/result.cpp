#include "base/result.h"

#include "base/text.h"

namespace gpuwright {

std::string Error::message() const {
  std::string text;
  if (!where.file.empty()) {
    text += where.file;
    if (where.line) text += ":" + std::to_string(*where.line);
    if (where.byte) text += ": byte " + std::to_string(*where.byte);
    text += ": ";
  }
  text += what;
  if (!hint.empty()) text += " (" + hint + ")";
  return printable(text);
}

}  // namespace gpuwright
