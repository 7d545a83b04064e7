// Splits a command line into words as a POSIX shell would, without running anything: quotes, backslashes, continued
// lines, comments. What only a shell could answer ($variables, `commands`) is an error, not a guess; globs are left as
// they are, and a command ends at a pipe, a redirection or "&".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::fit {

struct ShellWord {
  std::string text;
  std::int64_t line = 1;
};
// At most 64 KiB and 1,000 words. Leading lines that are only comments or blank are passed over; the command ends at
// the end of its (continued) line.
// `first_line` is the number of the text's first line, for messages.
Result<std::vector<ShellWord>> shell_words(std::string_view text, std::string_view name, std::int64_t first_line = 1);

}  // namespace gpuwright::fit
