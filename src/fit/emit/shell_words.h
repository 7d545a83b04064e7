// Splits a command line into words as a POSIX shell would, without running anything: quotes, backslashes, continued
// lines, comments. What only a shell could answer ($variables, `commands`, globs left as they are, pipes, redirections)
// is an error, not a guess.
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
Result<std::vector<ShellWord>> shell_words(std::string_view text, std::string_view name);

}  // namespace gpuwright::fit
