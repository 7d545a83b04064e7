#include "explain/input.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/stream.h"

namespace gpuwright::explain {
namespace {

constexpr std::size_t kPiece = 256 << 10;
constexpr std::size_t kMostFiles = 4096;

// Numbers within names compare as numbers.
bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto run = [&](std::string_view text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = run(a, i), y = run(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() - i < b.size() - j;
}

Status read_one(const std::string& path, const std::string& source, Scanner& scanner, const Progress& progress) {
  InputStream stream = GW_TRY(InputStream::open(path));
  scanner.begin(source);
  std::string piece(kPiece, '\0');
  while (true) {
    const auto count = stream.read(piece.data(), piece.size());
    if (!count) {
      scanner.end();
      return tl::unexpected(count.error());
    }
    if (*count == 0) break;
    scanner.feed(std::string_view(piece.data(), *count));
    if (progress && !progress(stream.bytes_read(), stream.size())) break;
  }
  scanner.end();
  return {};
}

bool is_regular(const std::string& path) {
  struct stat about = {};
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

Result<LogInput> read_logs(const std::string& path, Scanner& scanner, const Progress& progress) {
  LogInput input;
  if (!is_directory(path)) {
    GW_TRY(read_one(path, path == "-" ? "-" : path, scanner, progress));
    input.files.push_back(path);
    return input;
  }
  std::vector<std::string> names = GW_TRY(list_directory(path));
  std::sort(names.begin(), names.end(), natural_less);
  for (const std::string& name : names) {
    const std::string file = path + "/" + name;
    if (name.starts_with('.') || !is_regular(file)) continue;
    if (input.files.size() >= kMostFiles) {
      input.notes.push_back(fmt::format("only the first {} files of {} were read", kMostFiles, path));
      break;
    }
    if (const Status done = read_one(file, name, scanner, progress); !done)
      input.notes.push_back(done.error().message());
    input.files.push_back(file);
  }
  if (input.files.empty()) return fail(ErrorCode::not_found, fmt::format("{}: no log files are in this folder", path));
  return input;
}

}  // namespace gpuwright::explain
