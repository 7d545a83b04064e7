// The one door to files. Readers of models take a ByteSource, so that a local file, an HTTP range and a test's bytes
// are read by the same code, and never more than asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright {

// Random access to bytes whose contents are not trusted. Reads past the end give fewer bytes, not an error.
// Thread-safe: read_at may be called from several threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::int64_t size() const = 0;
  virtual Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const = 0;
  virtual const std::string& name() const = 0;  // for messages
};

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);
std::unique_ptr<ByteSource> bytes_in_memory(std::string bytes, std::string name);

// The whole contents; an error when there are more than max_bytes.
Result<std::string> read_whole(const ByteSource& source, std::int64_t max_bytes);
Result<std::string> read_file(const std::string& path, std::int64_t max_bytes);

// Writes a new file beside the old one and renames it over, so that a kill leaves the old or the new, never half.
Status write_file_atomically(const std::string& path, std::string_view contents);

bool is_directory(const std::string& path);
bool path_exists(const std::string& path);
// Why nothing can be found at a path: not_found when it is absent, unavailable with the system's reason (permission
// denied, a loop of symbolic links) otherwise.
Status check_path(const std::string& path);
// The last component of the path once ".", ".." and links are resolved; the path itself where that fails.
std::string real_name(const std::string& path);
// Names (not paths) of the entries, sorted.
Result<std::vector<std::string>> list_directory(const std::string& path);

// $XDG_CONFIG_HOME/gpuwright or ~/.config/gpuwright; likewise the cache. Empty when there is no home.
std::string config_directory();
std::string cache_directory();

}  // namespace gpuwright
