#include "doctor/archive.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace gpuwright::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostArchiveBytes = 64 << 20;
constexpr std::size_t kMostEntries = 65536;
constexpr int kMostBases = 4;
constexpr std::string_view kHostFile = "/gpuwright-host.json";

bool is_safe_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() < 2 || path.size() > 4096) return false;
  const auto parts = split(path.substr(1), '/');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.size() < 256 &&
           part.find('\0') == std::string_view::npos;
  });
}

// Reads one file onto what its bases gave.
class ArchiveReader {
 public:
  ArchiveReader(std::string file, Archive& archive) : file_(std::move(file)), archive_(archive) {}

  Status read(int depth) {
    const std::string text = GW_TRY(read_file(file_, kMostArchiveBytes));
    return parse(text, depth);
  }

  Status parse(std::string_view text, int depth) {
    std::string_view rest = text;
    while (!rest.empty()) {
      ++line_;
      const std::size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      if (line.starts_with("== ")) {
        GW_TRY(finish());
        GW_TRY(begin(line.substr(3)));
      } else if (entry_ != nullptr || merging_) {
        body_ += line.starts_with('\\') ? line.substr(1) : line;
        body_ += '\n';
      } else if (line.starts_with("base: ")) {
        GW_TRY(read_base(trim(line.substr(6)), depth));
      } else if (!trim(line).empty() && !line.starts_with('#')) {
        return wrong("a line before the first \"== \" is neither a comment nor \"base: FILE\"");
      }
    }
    return finish();
  }

 private:
  tl::unexpected<Error> wrong(std::string what) const {
    return fail_at(ErrorCode::bad_input, {file_, line_, std::nullopt}, std::move(what),
                   "its format is in docs/doctor.md");
  }

  Status read_base(std::string_view name, int depth) {
    if (depth >= kMostBases) return wrong("too many bases, one upon the other");
    if (name.empty() || name.find('/') != std::string_view::npos || name.starts_with('.'))
      return wrong("a base has to be the name of a file beside this one");
    const std::string path = (fs::path(file_).parent_path() / std::string(name)).string();
    return ArchiveReader(path, archive_).read(depth + 1);
  }

  Status begin(std::string_view header) {
    body_.clear();
    if (archive_.size() >= kMostEntries) return wrong("more files than are read of a host");
    const std::size_t arrow = header.find(" -> ");
    std::string path(trim(header.substr(0, arrow)));
    if (header.ends_with(" !")) return remove(trim(header.substr(0, header.size() - 2)));
    if (header.ends_with(" +")) {
      if (trim(header.substr(0, header.size() - 2)) != kHostFile)
        return wrong("only gpuwright-host.json can be merged");
      merging_ = true;
      return {};
    }
    hex_ = arrow == std::string_view::npos && path.ends_with(" (hex)");
    if (hex_) path = trim(std::string_view(path).substr(0, path.size() - 6));
    const bool folder = arrow == std::string_view::npos && path.ends_with('/');
    if (folder) path.pop_back();
    if (!is_safe_path(path)) return wrong("no path that a host can have: " + printable(path));
    ArchiveEntry& entry = archive_[path];
    entry = {};
    if (arrow != std::string_view::npos)
      entry = {ArchiveEntry::Kind::link, std::string(trim(header.substr(arrow + 4)))};
    else if (folder)
      entry.kind = ArchiveEntry::Kind::folder;
    else
      entry_ = &entry;
    return {};
  }

  Status remove(std::string_view path) {
    const std::string below = std::string(path) + "/";
    std::erase_if(archive_, [&](const auto& one) { return one.first == path || one.first.starts_with(below); });
    return {};
  }

  Result<std::string> bytes_of(std::string_view digits) const {
    std::string bytes;
    int high = -1;
    for (const char c : digits) {
      const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (c == '\n' || c == ' ') continue;
      if (value < 0) return wrong("a byte is two digits of 0-9a-f");
      if (high >= 0) bytes += static_cast<char>(high * 16 + value);
      high = high >= 0 ? -1 : value;
    }
    if (high >= 0) return wrong("a byte is two digits of 0-9a-f");
    return bytes;
  }

  // The end of an entry: its text is known.
  Status finish() {
    const std::string merged = merging_ ? body_ : "";
    if (entry_ != nullptr) entry_->text = hex_ ? GW_TRY(bytes_of(body_)) : std::move(body_);
    entry_ = nullptr;
    body_.clear();
    if (!merging_) return {};
    merging_ = false;
    return merge(merged);
  }

  Status merge(const std::string& addition) {
    ArchiveEntry& entry = archive_[std::string(kHostFile)];
    Json host = Json::object();
    if (!entry.text.empty()) host = GW_TRY(parse_json(entry.text, file_));
    const Json members = GW_TRY(parse_json(addition, file_));
    for (const auto& [name, value] : members.members()) host.set(name, value);
    entry.text = host.dump() + "\n";
    return {};
  }

  std::string file_;
  Archive& archive_;
  std::int64_t line_ = 0;
  ArchiveEntry* entry_ = nullptr;
  bool merging_ = false, hex_ = false;
  std::string body_;
};

std::string hex_of(std::string_view bytes) {
  constexpr std::size_t kBytesALine = 32;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
    if (i + 1 == bytes.size() || (i + 1) % kBytesALine == 0) text += '\n';
  }
  return text;
}

tl::unexpected<Error> cannot(std::string_view doing, std::string_view path, std::string_view why) {
  return fail(ErrorCode::unavailable, fmt::format("cannot {} {}: {}", doing, printable(path), why));
}

Status write_entry(const std::string& root, const std::string& path, const ArchiveEntry& entry) {
  std::error_code error;
  const fs::path target = root + path;
  fs::create_directories(entry.kind == ArchiveEntry::Kind::folder ? target : target.parent_path(), error);
  if (error) return cannot("unpack", path, error.message());
  if (entry.kind == ArchiveEntry::Kind::folder) return {};
  if (entry.kind == ArchiveEntry::Kind::link) {
    fs::create_symlink(entry.text, target, error);
    if (error) return cannot("unpack", path, error.message());
    return {};
  }
  std::ofstream file(target, std::ios::binary);
  file << entry.text;
  if (!file.flush()) return cannot("unpack", path, "it cannot be written");
  return {};
}

}  // namespace

Result<Archive> read_archive(const std::string& file) {
  Archive archive;
  GW_TRY(ArchiveReader(file, archive).read(0));
  return archive;
}

Result<Archive> parse_archive(std::string_view text) {
  Archive archive;
  GW_TRY(ArchiveReader("archive", archive).parse(text, kMostBases));
  return archive;
}

std::string archive_text(const Archive& archive) {
  std::string text;
  for (const auto& [path, entry] : archive) {
    text += "== " + path;
    if (entry.kind == ArchiveEntry::Kind::folder) text += "/";
    if (entry.kind == ArchiveEntry::Kind::link) text += " -> " + entry.text;
    const bool hex =
        entry.kind == ArchiveEntry::Kind::file && (!is_utf8(entry.text) || entry.text.find('\0') != std::string::npos);
    text += hex ? " (hex)\n" : "\n";
    if (hex) {
      text += hex_of(entry.text);
      continue;
    }
    if (entry.kind != ArchiveEntry::Kind::file || entry.text.empty()) continue;
    std::string_view rest = entry.text;
    if (rest.ends_with('\n')) rest.remove_suffix(1);
    for (const std::string_view line : split(rest, '\n')) {
      if (line.starts_with("== ") || line.starts_with('\\')) text += '\\';
      text += line;
      text += '\n';
    }
  }
  return text;
}

Result<UnpackedHost> UnpackedHost::unpack(const Archive& archive) {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "gpuwright-host-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) return cannot("make", pattern, std::strerror(errno));
  UnpackedHost host(pattern);
  for (const bool links : {false, true})
    for (const auto& [path, entry] : archive)
      if ((entry.kind == ArchiveEntry::Kind::link) == links) GW_TRY(write_entry(host.root_, path, entry));
  return host;
}

UnpackedHost::~UnpackedHost() {
  std::error_code ignored;
  if (!root_.empty()) fs::remove_all(root_, ignored);
}

UnpackedHost::UnpackedHost(UnpackedHost&& other) noexcept : root_(std::move(other.root_)) {
  other.root_.clear();
}

}  // namespace gpuwright::doctor
