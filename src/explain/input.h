// Logs as they lie on disk or come through a pipe, for a Scanner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "explain/scanner.h"

namespace gpuwright::explain {

struct LogInput {
  std::vector<std::string> files;  // what was read, in order
  std::vector<std::string> notes;  // what was passed over, and why
};

// Told now and then how far the reading is; gives false to end it (Ctrl-C): what was read so far stands.
using Progress = std::function<bool(std::int64_t bytes_read, std::int64_t size)>;

// Reads a file, "-" (standard input), or the files of a folder as one incident, sorted so that rank 2 comes before rank
// 10. A file of a folder that cannot be read is noted; a single one is an error.
Result<LogInput> read_logs(const std::string& path, Scanner& scanner, const Progress& progress = {});

}  // namespace gpuwright::explain
